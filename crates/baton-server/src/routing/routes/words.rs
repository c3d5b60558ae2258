//! Splits text into words, so that messages can be compared with cards.
//!
//! There are no rules for particular languages, except that common English endings are removed. Case, accents and character
//! width are removed as well. Scripts that write without spaces are split into pairs of characters, so that a word is found
//! anywhere in a sentence.

use std::ops::RangeInclusive;

/// How many bytes of a message are read: requests come early in a message, and pasted text may be long.
pub(super) const MOST_BYTES: usize = 4096;

/// The words of one text.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// In order, as often as they occur.
    pub(super) list: Vec<String>,
    /// Words with hyphens or underscores as one word each: many write `email` for `e-mail`.
    pub(super) joined: Vec<String>,
    /// The text was longer than [`MOST_BYTES`].
    pub(super) cut: bool,
}

/// Reads a text, or several as one.
pub(super) fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Words {
    let mut reader = Reader::default();
    let mut left = MOST_BYTES;
    for text in texts {
        for (at, character) in text.char_indices() {
            if at >= left {
                reader.words.cut = true;
                break;
            }
            reader.take(character);
        }
        reader.end_token();
        left = left.saturating_sub(text.len());
    }
    reader.words
}

/// The words of an id; `getWeather` has the same as `get-weather`.
pub(super) fn of_id(id: &str) -> Words {
    let mut spaced = String::with_capacity(id.len() + 8);
    let mut before = None;
    for character in id.chars() {
        if character.is_uppercase() && before.is_some_and(char::is_lowercase) {
            spaced.push('-');
        }
        spaced.push(character);
        before = Some(character);
    }
    of([spaced.as_str()])
}

/// The weight of a word by its length: in most languages, the shortest words mean little.
pub(super) fn weight(word: &str) -> f64 {
    match word.chars().count() {
        _ if word.starts_with(is_unspaced) || word.starts_with(is_picture) => 4.0,
        count @ 0..=3 => count as f64 / 2.0,
        count => count.min(12) as f64,
    }
}

#[derive(Default)]
struct Reader {
    words: Words,
    word: String,
    /// The word is of a script that writes without spaces.
    unspaced: bool,
    /// The words since the last space, and how many they are.
    token: String,
    pieces: usize,
}

impl Reader {
    fn take(&mut self, character: char) {
        match character {
            // Marks and joiners belong to the character before them.
            '\u{300}'..='\u{36f}' | '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{fe00}'..='\u{fe0f}' => {}
            '-' | '_' => self.end_word(),
            _ if is_picture(character) => {
                self.end_token();
                self.words.list.push(character.to_string());
            }
            _ if character.is_alphanumeric() => {
                let unspaced = is_unspaced(character);
                if unspaced != self.unspaced {
                    self.end_word();
                }
                self.unspaced = unspaced;
                // By way of upper case: ß is ss, and both forms of the final sigma are one.
                let folded = narrow(character).to_uppercase().flat_map(char::to_lowercase);
                self.word.extend(folded.filter(|folded| folded.is_alphanumeric()).map(bare));
            }
            _ => self.end_token(),
        }
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        self.token.push_str(&word);
        self.pieces += 1;
        if self.unspaced {
            pairs(&word, &mut self.words.list);
        } else {
            self.words.list.push(stem(word));
        }
    }

    fn end_token(&mut self) {
        self.end_word();
        let token = std::mem::take(&mut self.token);
        if self.pieces > 1 && !token.contains(is_unspaced) {
            self.words.joined.push(stem(token));
        }
        self.pieces = 0;
    }
}

/// 天気予報 is 天気, 気予, 予報.
fn pairs(run: &str, list: &mut Vec<String>) {
    let characters: Vec<char> = run.chars().collect();
    if let [single] = characters.as_slice() {
        list.push(single.to_string());
    }
    list.extend(characters.windows(2).map(|pair| pair.iter().collect::<String>()));
}

/// Full-width letters and digits, as Japanese and Chinese keyboards make them.
fn narrow(character: char) -> char {
    match character {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(character as u32 - 0xfee0).unwrap_or(character),
        _ => character,
    }
}

/// A small Latin letter without its accent: not everybody types them, and they come in two encodings.
fn bare(character: char) -> char {
    /// U+0100 to U+017F; small and capital letters take turns there.
    const EXTENDED: &[u8; 128] = b"aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiijjjjkkklllllllll\
                                   lnnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs";
    match character {
        'à'..='å' => 'a',
        'ç' => 'c',
        'è'..='ë' => 'e',
        'ì'..='ï' => 'i',
        'ñ' => 'n',
        'ò'..='ö' | 'ø' => 'o',
        'ù'..='ü' => 'u',
        'ý' | 'ÿ' => 'y',
        '\u{100}'..='\u{17f}' => char::from(EXTENDED[character as usize - 0x100]),
        _ => character,
    }
}

/// What is left without an ending: translate, translates, translating and translation are one word.
fn stem(word: String) -> String {
    /// Longest first, with how many letters must be left of the word.
    const ENDINGS: &[(&str, usize)] = &[
        ("ations", 4),
        ("ation", 4),
        ("ators", 4),
        ("ator", 4),
        ("ating", 4),
        ("ated", 4),
        ("ates", 4),
        ("ions", 4),
        ("ings", 4),
        ("ate", 4),
        ("ion", 4),
        ("ing", 4),
        ("ers", 4),
        ("er", 4),
        ("ed", 4),
        ("es", 4),
        ("e", 4),
        ("s", 3),
    ];
    if !word.bytes().all(|byte| byte.is_ascii_lowercase()) || word.ends_with("ss") {
        return word;
    }
    let ending =
        ENDINGS.iter().find(|(ending, least)| word.len() >= ending.len() + least && word.ends_with(ending));
    match ending {
        Some((ending, _)) => word[..word.len() - ending.len()].to_owned(),
        None => word,
    }
}

/// Han, kana, Hangul (whose particles stick to the word), Thai, Lao, Burmese, Khmer.
fn is_unspaced(character: char) -> bool {
    const SCRIPTS: &[RangeInclusive<char>] = &[
        '\u{e00}'..='\u{eff}',
        '\u{1000}'..='\u{109f}',
        '\u{1780}'..='\u{17ff}',
        '\u{3005}'..='\u{30ff}',
        '\u{3400}'..='\u{4dbf}',
        '\u{4e00}'..='\u{9fff}',
        '\u{ac00}'..='\u{d7af}',
        '\u{f900}'..='\u{faff}',
        '\u{ff66}'..='\u{ff9f}',
        '\u{20000}'..='\u{3ffff}',
    ];
    character >= '\u{e00}' && SCRIPTS.iter().any(|script| script.contains(&character))
}

/// Emoji and signs that stand for a thing: each is a word.
fn is_picture(character: char) -> bool {
    matches!(character, '\u{2600}'..='\u{27bf}' | '\u{1f300}'..='\u{1faff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(of([text]).list, expected, "{text:?}");
    }

    #[test]
    fn the_same_word_is_the_same_however_it_is_written() {
        check("Weather, WEATHER! weather?", &["weath"; 3]);
        check("translate translates translated translating translation translator", &["transl"; 6]);
        check("file files filing", &["file", "file", "filing"]);
        check("note not cats cat addresses address", &["note", "not", "cat", "cat", "address", "address"]);
        check("café cafe\u{301} CAFÉ CAFE", &["cafe"; 4]);
        check("Straße STRASSE", &["strass"; 2]);
        check("ŁÓDŹ łódź lodz", &["lodz"; 3]);
        check("Σίσυφος ΣΊΣΥΦΟΣ", &["σίσυφοσ"; 2]);
        check("ｗｅａｔｈｅｒ", &["weath"]);
        check("", &[]);
        check("… !? ¿", &[]);
    }

    #[test]
    fn every_letter_of_the_table_of_accents_has_its_own() {
        for (accented, plain) in [
            ('ā', 'a'),
            ('č', 'c'),
            ('đ', 'd'),
            ('ę', 'e'),
            ('ğ', 'g'),
            ('ħ', 'h'),
            ('į', 'i'),
            ('ĵ', 'j'),
            ('ķ', 'k'),
            ('ł', 'l'),
            ('ň', 'n'),
            ('ő', 'o'),
            ('ř', 'r'),
            ('š', 's'),
            ('ť', 't'),
            ('ů', 'u'),
            ('ŵ', 'w'),
            ('ŷ', 'y'),
            ('ž', 'z'),
        ] {
            assert_eq!(bare(accented), plain, "{accented}");
        }
    }

    #[test]
    fn scripts_without_spaces_are_cut_into_pairs() {
        check("天気予報", &["天気", "気予", "予報"]);
        check("犬", &["犬"]);
        check("PDFを翻訳", &["pdf", "を翻", "翻訳"]);
        check("☔️は?", &["☔", "は"]);
    }

    #[test]
    fn hyphens_separate_and_tie() {
        let words = of(["send an e-mail to text_to_speech"]);
        assert_eq!(words.list, ["send", "an", "e", "mail", "to", "text", "to", "speech"]);
        assert_eq!(words.joined, ["email", "texttospeech"]);
        assert_eq!(of_id("getWeatherNow").list, ["get", "weath", "now"]);
        assert_eq!(of_id("HTTPGet").list, ["httpget"]);
    }

    #[test]
    fn only_so_much_is_read() {
        let long = "ab ".repeat(MOST_BYTES);
        let words = of([long.as_str(), "more"]);
        assert!(words.cut);
        assert_eq!(words.list.len(), MOST_BYTES.div_ceil(3));
        assert!(!of(["short", "texts"]).cut);
        let (first, second) = ("a".repeat(MOST_BYTES), "b");
        assert!(of([first.as_str(), second]).cut);
    }
}
