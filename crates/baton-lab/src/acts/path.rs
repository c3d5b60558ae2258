//! Dot paths into JSON: `a.b`, `a[0].b`, and `[*]` where many nodes are wanted.

use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Segment<'a> {
    Member(&'a str),
    Index(usize),
    Every,
}

fn segments(path: &str) -> Result<Vec<Segment<'_>>, String> {
    let bad = || format!("`{path}` is no path; it is written as in `a.b[0].c`");
    let mut all = Vec::new();
    for dotted in path.split('.').filter(|part| !part.is_empty()) {
        let (name, mut rest) = dotted.split_at(dotted.find('[').unwrap_or(dotted.len()));
        if !name.is_empty() {
            all.push(Segment::Member(name));
        }
        while !rest.is_empty() {
            let inner = rest.strip_prefix('[').ok_or_else(bad)?;
            let (index, after) = inner.split_once(']').ok_or_else(bad)?;
            all.push(if index == "*" {
                Segment::Every
            } else {
                Segment::Index(index.parse().map_err(|_| bad())?)
            });
            rest = after;
        }
    }
    Ok(all)
}

/// The node at a path, or `None` if there is none.
pub fn one<'a>(root: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let mut at = root;
    for segment in segments(path)? {
        let next = match segment {
            Segment::Member(name) => at.get(name),
            Segment::Index(index) => at.get(index),
            Segment::Every => return Err(format!("`{path}`: [*] is for collection assertions")),
        };
        match next {
            Some(next) => at = next,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

/// All nodes that match a path.
pub fn every<'a>(root: &'a Value, path: &str) -> Result<Vec<&'a Value>, String> {
    let mut at = vec![root];
    for segment in segments(path)? {
        at = at
            .into_iter()
            .flat_map(|node| -> Box<dyn Iterator<Item = &Value>> {
                match segment {
                    Segment::Member(name) => Box::new(node.get(name).into_iter()),
                    Segment::Index(index) => Box::new(node.get(index).into_iter()),
                    Segment::Every => Box::new(node.as_array().into_iter().flatten()),
                }
            })
            .collect();
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_where_they_say() {
        let root = json!({"a": {"b": [{"c": 1}, {"c": 2}, {}]}, "x-y": null});
        for (path, found) in [
            ("", Some(root.clone())),
            ("a.b[1].c", Some(json!(2))),
            ("a.b[2].c", None),
            ("a.b[3]", None),
            ("x-y", Some(Value::Null)),
            ("a.b.c", None),
        ] {
            assert_eq!(one(&root, path).unwrap().cloned(), found, "{path}");
        }
        assert_eq!(every(&root, "a.b[*].c").unwrap(), [&json!(1), &json!(2)]);
        assert!(every(&root, "x-y[*]").unwrap().is_empty());
        for bad in ["a[", "a[x]", "a]b", "a[0]b"] {
            assert!(one(&root, bad).is_err() || bad == "a]b", "{bad}");
        }
        assert!(one(&root, "a.b[*]").is_err());
    }
}
