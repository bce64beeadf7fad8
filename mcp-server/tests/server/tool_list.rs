//! The list of tools as a model reads it.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::driver::{Client, Workspace};

fn tools() -> Vec<Value> {
    let workspace = Workspace::new();
    let list = Client::start(&workspace).request("tools/list", json!({}));
    list["result"]["tools"].as_array().unwrap().clone()
}

#[test]
fn the_tools_are_described() {
    let mut text = String::new();
    for tool in tools() {
        writeln!(text, "{}: {}", tool["name"], tool["description"]).unwrap();
        arguments(&mut text, &tool["inputSchema"], 1);
    }
    insta::assert_snapshot!(text.replace('"', ""), @r#"
    workspace_read: Reads a text file, at most 2000 lines or 50 KiB at once. The file's text comes first, exactly as it is; a note in brackets after it gives the file's digest and, if there is more, the `offset` that goes on.
      path (string): File to read, such as `notes/today.md`.
      offset? (integer): First line to read, counted from 1.
      limit? (integer): How many lines to read.
      max_bytes? (integer): Most bytes to read, up to 4194304, instead of 50 KiB and 2000 lines. Only for clients that take long results.
    workspace_write: Writes a whole text file, and the folders above it if they are missing. To change part of a file, use workspace_edit.
      path (string): File to write, such as `notes/today.md`.
      content (string): The file's whole new text.
      expected_digest? (string): Digest that workspace_read gave for the file. If the file has changed since, nothing is written.
      create_only? (boolean): Only make a new file; if there is one, nothing is written.
    workspace_edit: Replaces exact pieces of a text file: all edits, in order, or none. Everything else in the file stays as it is. Line ends are matched and written as the file has them, so write them plainly.
      path (string): File to edit.
      edits (array): Edits, each applied to what the one before it left.
        old_text (string): Text to replace, to the letter and without line numbers. It must be in the file exactly once: give enough of what is around it.
        new_text (string): Text to put in its place, taken literally.
        replace_all? (boolean): Replace every occurrence instead of the only one.
      expected_digest? (string): Digest that workspace_read gave for the file. If the file has changed since, nothing is edited.
    workspace_list: Lists what is in a folder and the folders beneath it, at most 1000 entries: folders end with `/`, files have their size in bytes, links show where they lead.
      path? (string): Folder to list; the whole workspace if left out.
      depth? (integer): How many levels down; 1 is only the folder itself. All if left out.
      glob? (string): Only files that match, such as `*.md` or `notes/**/*.md`.
    workspace_search: Searches the text of files and gives the lines found as `path:line: text`, at most 200. Binary files are skipped.
      pattern (string): What to look for.
      regex? (boolean): Take the pattern as a regular expression instead of plain text.
      case_sensitive? (boolean): Tell capital from small letters.
      path? (string): Folder to search; the whole workspace if left out.
      glob? (string): Only files that match, such as `*.md` or `notes/**/*.md`.
    workspace_delete: Deletes a file, an empty folder, or a link (not what it leads to). There is no way back.
      path (string): What to delete.
      recursive? (boolean): Delete a folder with all that is in it.
    workspace_move: Moves or renames a file or folder. Folders that are missing above the new place are made.
      from (string): What to move.
      to (string): Its new path, or an existing folder to move a file into.
      overwrite? (boolean): Replace a file that is at the new path.
    memory_read: Reads one of your memory files: `SOUL.md` (who you are), `USER.md` (who the user is), `MEMORY.md` (what to remember), or a note such as `memory/2026-01-31.md`. A note in brackets after the text gives the digest.
      file (string): Memory file to read, such as `MEMORY.md`.
      offset? (integer): First line to read, counted from 1.
    memory_write: Writes a whole memory file. What was in it is lost, so read it first; to add something, use memory_append.
      file (string): Memory file to write, such as `USER.md`.
      content (string): The file's whole new text.
      expected_digest? (string): Digest that memory_read gave for the file. If the file has changed since, nothing is written.
    memory_append: Adds text at the end of a memory file, on a line of its own. Makes the file if it's missing. What is in it stays, whoever else adds to it at the same time.
      file (string): Memory file to add to, such as `MEMORY.md` or `memory/2026-01-31.md`.
      text (string): Text to add, such as `- Ada prefers tea`.
    "#);
}

fn arguments(text: &mut String, schema: &Value, depth: usize) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, argument) in schema["properties"].as_object().unwrap() {
        let needed = if required.contains(&json!(name)) { "" } else { "?" };
        let (kind, said) = (&argument["type"], &argument["description"]);
        writeln!(text, "{}{name}{needed} ({kind}): {said}", "  ".repeat(depth)).unwrap();
        if argument["items"].is_object() {
            arguments(text, &argument["items"], depth + 1);
        }
    }
}

#[test]
fn schemas_are_plain_and_closed() {
    for tool in tools() {
        let schema = &tool["inputSchema"];
        assert_eq!(
            (&schema["type"], &schema["additionalProperties"]),
            (&json!("object"), &json!(false))
        );
        for noise in ["null", "$ref", "$schema", "\"title\"", "\"format\"", "anyOf"] {
            assert!(!schema.to_string().contains(noise), "{noise}: {schema}");
        }
        assert!(schema.to_string().len() < 1500, "{schema}");
        let hints = &tool["annotations"];
        assert!(
            hints["readOnlyHint"].is_boolean() && hints["openWorldHint"].is_boolean(),
            "{tool}"
        );
    }
}
