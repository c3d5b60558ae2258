//! Chooses the skill for a message: the `skillId` in its metadata, else the only skill, else the one whose words or media
//! types fit best, else the default skill, else none.
//!
//! The result depends on the message and the skills alone, not on time, randomness or state. `docs/routing.md` describes
//! it for users, with a table of examples that is also the test.

mod media;
#[cfg(test)]
mod tests;
mod words;

use std::collections::{HashMap, HashSet};

use baton_protocol::domain::{AgentCard, AgentSkill, Message, PartContent};

use words::Words;

/// The score of a word that is the whole of a skill's id, its name, or one of its tags.
const ID: f64 = 4.0;
const NAME: f64 = 3.0;
const TAG: f64 = 2.5;
/// The score of an example, multiplied by how similar it is to the message.
const EXAMPLE: f64 = 2.0;
/// Lower scores count as coincidence.
const ENOUGH: f64 = 1.1;
/// An example counts by itself only if it is at least this similar to the message and shares at least this many words:
/// "please" and "can you" are in many examples.
const LIKE: f64 = 0.55;
const LIKE_WORDS: usize = 2;
/// Later words count less: most messages begin with the request, and long text may follow.
const FIRST_WORDS: usize = 32;
const LATER: f64 = 0.25;

/// The index of one agent's skills.
#[derive(Debug)]
pub(crate) struct Routes {
    ids: Vec<String>,
    default: Option<usize>,
    index: HashMap<String, Entry>,
    examples: Vec<Example>,
    /// Skills by the words of their examples, in order: a message with the same words goes to that skill.
    spoken: HashMap<String, Vec<usize>>,
    /// The input modes of each skill.
    modes: Vec<Vec<String>>,
    /// The output modes of each skill.
    outputs: Vec<Vec<String>>,
}

/// The index entry of one word.
#[derive(Debug)]
struct Entry {
    /// 1 for a word of a single skill; lower the more skills have it.
    rarity: f64,
    /// The skills that have the word, with its score for each.
    hits: Vec<(usize, f64)>,
}

#[derive(Debug)]
struct Example {
    skill: usize,
    words: Vec<String>,
}

impl Routes {
    /// `default` is the skill for messages that fit no skill, or several equally well.
    pub(crate) fn new(card: &AgentCard, default: Option<&str>) -> Self {
        let skills = &card.skills;
        let ids: Vec<String> = skills.iter().map(|skill| skill.id.clone()).collect();
        let default = default.and_then(|id| ids.iter().position(|other| other == id));
        let read: Vec<Spoken> = skills.iter().map(Spoken::read).collect();
        let mut having: HashMap<&String, usize> = HashMap::new();
        for spoken in &read {
            for word in spoken.words().collect::<HashSet<_>>() {
                *having.entry(word).or_default() += 1;
            }
        }
        let rarity = |skills: usize| {
            let all = read.len() as f64;
            (1.0 + all / skills as f64).ln() / (1.0 + all).ln()
        };
        let entry = |skills: usize| Entry { rarity: rarity(skills), hits: Vec::new() };
        let mut index: HashMap<String, Entry> =
            having.into_iter().map(|(word, skills)| (word.clone(), entry(skills))).collect();
        for (at, spoken) in read.iter().enumerate() {
            for (part, phrase) in &spoken.phrases {
                let whole: f64 = distinct(&phrase.list).map(|word| mass(&index, word)).sum();
                let shares = distinct(&phrase.list).map(|word| (word, mass(&index, word) / whole));
                let shares: Vec<(String, f64)> = shares.map(|(word, share)| (word.clone(), share)).collect();
                for (word, share) in
                    shares.into_iter().chain(phrase.joined.iter().map(|word| (word.clone(), 1.0)))
                {
                    index.get_mut(&word).expect("every word is in the index").hit(at, part * share);
                }
            }
        }
        let mut spoken_by: HashMap<String, Vec<usize>> = HashMap::new();
        let mut examples = Vec::new();
        for (at, spoken) in read.into_iter().enumerate() {
            for (text, example) in spoken.examples {
                let skills = spoken_by.entry(said(&example, &text)).or_default();
                if !skills.contains(&at) {
                    skills.push(at);
                }
                examples.push(Example { skill: at, words: distinct(&example.list).cloned().collect() });
            }
        }
        let modes = skills.iter().map(|skill| {
            let own = !skill.input_modes.is_empty();
            if own { skill.input_modes.clone() } else { card.default_input_modes.clone() }
        });
        let outputs = skills.iter().map(|skill| {
            let own = !skill.output_modes.is_empty();
            if own { skill.output_modes.clone() } else { card.default_output_modes.clone() }
        });
        let outputs = outputs.collect();
        Routes { default, index, examples, spoken: spoken_by, modes: modes.collect(), outputs, ids }
    }

    /// The id of the skill for a message that starts a task.
    pub(crate) fn choose(&self, message: &Message) -> Option<&str> {
        if let Some(asked) = asked_skill(message) {
            return self.ids.iter().find(|id| **id == asked).map(String::as_str);
        }
        let chosen = match self.ids.len() {
            0 => None,
            1 => Some(0),
            _ => self.by_words(message).or_else(|| media::fitting(self, message)).or(self.default),
        };
        chosen.map(|at| self.ids[at].as_str())
    }

    /// The default skill.
    pub(crate) fn default_skill(&self) -> Option<&str> {
        self.default.map(|at| self.ids[at].as_str())
    }

    /// The ids of the skills, in the order of the card.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.ids.iter().map(String::as_str)
    }

    fn by_words(&self, message: &Message) -> Option<usize> {
        let words = words::of(texts(message));
        if !words.cut
            && let Some(skills) = self.spoken.get(&said(&words, &message.text()))
        {
            return self.one_of(skills);
        }
        // Two scores for each skill: how well it fits, and the same weighted by rarity, for choosing among those that fit.
        let mut fits = vec![0.0; self.ids.len()];
        let mut ranks = vec![0.0; self.ids.len()];
        for (at, word) in distinct(&words.list).chain(distinct(&words.joined)).enumerate() {
            let Some(entry) = self.index.get(word) else { continue };
            let early = if at < FIRST_WORDS { 1.0 } else { LATER };
            for (skill, strength) in &entry.hits {
                fits[*skill] += early * strength;
                ranks[*skill] += early * strength * entry.rarity;
            }
        }
        for (skill, like, enough) in self.likenesses(&words) {
            fits[skill] += if enough { EXAMPLE * like } else { 0.0 };
            ranks[skill] += EXAMPLE * like;
        }
        let fitting = (0..fits.len()).filter(|skill| fits[*skill] >= ENOUGH);
        best(fitting.map(|skill| (skill, ranks[skill]))).and_then(|best| self.one_of(&best))
    }

    /// The output modes of a skill; empty if it is not on the card.
    pub(crate) fn outputs(&self, skill: &str) -> &[String] {
        let at = self.ids.iter().position(|id| id == skill);
        at.map_or(&[], |at| &self.outputs[at])
    }

    /// For each skill with examples: the similarity of the most similar one to the message, and whether one is similar enough
    /// to count by itself.
    fn likenesses(&self, message: &Words) -> Vec<(usize, f64, bool)> {
        let said: HashSet<&String> = message.list.iter().collect();
        let whole: f64 = distinct(&message.list).map(|word| mass(&self.index, word)).sum();
        let mut found: Vec<(usize, f64, bool)> = Vec::new();
        for Example { skill, words } in &self.examples {
            let own: f64 = words.iter().map(|word| mass(&self.index, word)).sum();
            let same = words.iter().filter(|word| said.contains(word));
            let (count, shared) =
                same.fold((0, 0.0), |(count, sum), word| (count + 1, sum + mass(&self.index, word)));
            if count == 0 {
                continue;
            }
            let like = 2.0 * shared / (own + whole);
            let enough = like >= LIKE && count >= LIKE_WORDS;
            match found.last_mut().filter(|last| last.0 == *skill) {
                Some(last) if like > last.1 => *last = (*skill, like, enough || last.2),
                Some(last) => last.2 |= enough,
                None => found.push((*skill, like, enough)),
            }
        }
        found
    }

    /// The only skill; if there are several, the default skill, or else the first.
    fn one_of(&self, skills: &[usize]) -> Option<usize> {
        match skills {
            [] => None,
            [only] => Some(*only),
            [first, ..] => Some(self.default.unwrap_or(*first)),
        }
    }
}

/// The reason, for the client, why no skill was chosen.
pub(crate) fn nothing_fits<'a>(message: &Message, skills: impl Iterator<Item = &'a str>) -> String {
    /// Most ids that are listed.
    const MOST: usize = 20;
    let ids: Vec<&str> = skills.collect();
    let mut listed = ids.iter().take(MOST).map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
    if ids.len() > MOST {
        listed += &format!(" and {} more", ids.len() - MOST);
    }
    match asked_skill(message) {
        Some(asked) => {
            let asked: String = asked.chars().take(64).collect();
            format!(
                "No matching skill: there is no `{}`; this agent's skills are {listed}",
                asked.escape_debug()
            )
        }
        None => format!(
            "No matching skill: nothing in the message fits one; this agent's skills are {listed}. Name one as skillId \
             in the message's metadata"
        ),
    }
}

/// `skillId` in the metadata; null and the empty string count as missing. A value that is not a string is returned as its
/// JSON.
pub(super) fn asked_skill(message: &Message) -> Option<String> {
    let raw = message.metadata.as_ref()?.get("skillId")?;
    let asked = serde_json::from_str::<Option<String>>(raw).unwrap_or_else(|_| Some(raw.to_owned()));
    asked.filter(|id| !id.is_empty())
}

fn texts(message: &Message) -> impl Iterator<Item = &str> {
    message.parts.iter().filter_map(|part| match &part.content {
        PartContent::Text(text) => Some(text.as_str()),
        PartContent::Raw(_) | PartContent::Url(_) | PartContent::Data(_) => None,
    })
}

/// The words of a skill's entry on the card.
struct Spoken {
    /// Id, name and tags, with the score of each.
    phrases: Vec<(f64, Words)>,
    examples: Vec<(String, Words)>,
}

impl Spoken {
    fn read(skill: &AgentSkill) -> Self {
        let mut phrases = vec![(ID, words::of_id(&skill.id)), (NAME, words::of([skill.name.as_str()]))];
        phrases.extend(skill.tags.iter().map(|tag| (TAG, words::of([tag.as_str()]))));
        let examples = skill.examples.iter().map(|example| (example.clone(), words::of([example.as_str()])));
        Spoken { phrases, examples: examples.collect() }
    }

    fn words(&self) -> impl Iterator<Item = &String> {
        let phrases = self.phrases.iter().flat_map(|(_, words)| words.list.iter().chain(&words.joined));
        phrases.chain(self.examples.iter().flat_map(|(_, words)| &words.list))
    }
}

impl Entry {
    /// Adds a skill to the word's entry. A word counts once for a skill, with its highest score.
    fn hit(&mut self, skill: usize, strength: f64) {
        match self.hits.iter_mut().find(|(known, _)| *known == skill) {
            Some((_, most)) => *most = most.max(strength),
            None => self.hits.push((skill, strength)),
        }
    }
}

/// The weight of a word within a text.
fn mass(index: &HashMap<String, Entry>, word: &str) -> f64 {
    words::weight(word) * index.get(word).map_or(1.0, |entry| entry.rarity)
}

fn distinct(words: &[String]) -> impl Iterator<Item = &String> {
    let mut seen = HashSet::new();
    words.iter().filter(move |word| seen.insert(*word))
}

/// The words of a text, joined; the text itself if it has no words.
fn said(words: &Words, text: &str) -> String {
    if words.list.is_empty() { text.trim().to_owned() } else { words.list.join(" ") }
}

/// All skills that share the highest rank, in order. Differences by rounding are ignored.
fn best(ranked: impl Iterator<Item = (usize, f64)>) -> Option<Vec<usize>> {
    let mut best: Option<(f64, Vec<usize>)> = None;
    for (skill, rank) in ranked {
        match &mut best {
            Some((highest, skills)) if (rank - *highest).abs() <= 1e-9 * highest.abs() => skills.push(skill),
            Some((highest, _)) if rank < *highest => {}
            _ => best = Some((rank, vec![skill])),
        }
    }
    best.map(|(_, skills)| skills)
}
