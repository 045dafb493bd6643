use std::sync::Arc;

use serde_json::{Map, Value, json};
use tidegate_core::{
    id::CallId,
    message::Message,
    model::ToolSchema,
    tool::{Arguments, ToolCall, ToolMode, ToolResult, ToolSpec},
};

use super::{
    testing::{mcp, row, spec},
    *,
};

fn search_row() -> Arc<ToolSpec> {
    row("search_tools", "Finds more tools.", ToolMode::SearchTools, None)
}

fn catalogue(specs: Vec<Arc<ToolSpec>>, count_max: usize, bytes_max: usize) -> Arc<Catalogue> {
    let bounds = Bounds { count_max, bytes_max };
    Arc::new(Catalogue::new(specs.into(), bounds, None))
}

/// Four tools of the server's own, the search, and so many of another server's.
fn many(others: usize) -> Vec<Arc<ToolSpec>> {
    let own = ["read_text", "calculate", "list_files"].map(spec);
    let last = row("last_output", "An earlier result.", ToolMode::LastOutput, None);
    let others = (0..others).map(|n| mcp(&format!("mcp__fs__tool_{n}"), &format!("Does number{n} well."), json!({"x": {}})));
    own.into_iter().chain([last, search_row()]).chain(others).collect()
}

fn toolset(catalogue: &Arc<Catalogue>) -> Toolset {
    Toolset::new(Selection::all(Arc::clone(catalogue)), Vec::new())
}

fn names(toolset: &Toolset) -> Vec<&str> {
    toolset.offered().iter().map(|tool| tool.name.as_str()).collect()
}

fn ask(toolset: &mut Toolset, arguments: Value) -> String {
    let arguments = arguments.as_object().unwrap().clone();
    let result = toolset.search(&arguments);
    toolset.take_in();
    result.to_model_text()
}

#[test]
fn few_tools_are_all_shown_and_the_search_is_not() {
    let catalogue = catalogue(many(4), 8, 0);
    let toolset = toolset(&catalogue);
    assert_eq!(toolset.offered().len(), 8);
    assert!(toolset.get("search_tools").is_none());
    assert_eq!(toolset.selection().specs().len(), 8);
    assert_eq!(toolset.rest(), (0, ""));
    assert!(Arc::ptr_eq(toolset.offered(), super::Toolset::new(Selection::all(catalogue), Vec::new()).offered()));
}

#[test]
fn of_many_a_core_is_shown_and_the_rest_is_found() {
    for catalogue in [catalogue(many(5), 8, 0), catalogue(many(5), 0, 700)] {
        let mut toolset = toolset(&catalogue);
        let core = ["read_text", "calculate", "list_files", "last_output", "search_tools"];
        assert_eq!(names(&toolset), core, "{:?}", catalogue.bounds());
        assert_eq!(toolset.rest(), (5, "fs (5)"));
        assert!(toolset.get("mcp__fs__tool_3").is_some() && !toolset.is_offered("mcp__fs__tool_3"));
        let said = ask(&mut toolset, json!({"query": "number3"}));
        assert!(said.contains("- mcp__fs__tool_3(x?): Does number3 well."), "{said}");
        assert_eq!(names(&toolset).last(), Some(&"mcp__fs__tool_3"));
        assert!(toolset.is_offered("mcp__fs__tool_3"));
    }
}

#[test]
fn what_is_found_keeps_to_the_bounds_and_the_oldest_goes_first() {
    let catalogue = catalogue(many(20), 8, 0);
    let mut toolset = toolset(&catalogue);
    ask(&mut toolset, json!({"query": "number1", "count": 1}));
    ask(&mut toolset, json!({"query": "number2", "count": 1}));
    assert_eq!(toolset.found().collect::<Vec<_>>(), ["mcp__fs__tool_1", "mcp__fs__tool_2"]);
    let said = ask(&mut toolset, json!({"query": "fs", "count": "10"}));
    assert_eq!(said.matches("\n- ").count(), 3, "as many as there is room for: {said}");
    assert!(said.contains("17 more fit less well"), "{said}");
    assert_eq!(toolset.offered().len(), 8);
    assert!(!toolset.is_offered("mcp__fs__tool_2"));
    assert!(toolset.get("mcp__fs__tool_2").is_some(), "it may be called all the same");
}

#[test]
fn a_tool_that_was_not_shown_is_shown_when_it_is_called() {
    let catalogue = catalogue(many(20), 8, 0);
    let mut toolset = toolset(&catalogue);
    let result = toolset.shown_now("mcp__fs__tool_7");
    let ToolResult::Failed { message, .. } = &result else {
        panic!("{result:?}");
    };
    assert!(message.contains("call it again") && message.contains("mcp__fs__tool_7(x?)"), "{message}");
    toolset.take_in();
    assert!(toolset.is_offered("mcp__fs__tool_7"));
}

#[test]
fn nothing_is_found_beyond_what_the_key_may_use() {
    let catalogue = catalogue(many(20), 8, 0);
    let allowed: Vec<String> = (0..12).map(|n| format!("mcp__fs__tool_{n}")).collect();
    let selection = Selection::named(Arc::clone(&catalogue), allowed.iter().map(String::as_str));
    assert!(selection.specs().iter().any(|spec| spec.name == "search_tools"));
    let mut toolset = Toolset::new(selection, Vec::new());
    assert_eq!(names(&toolset), ["search_tools"]);
    assert_eq!(toolset.rest(), (12, "fs (12)"));
    let said = ask(&mut toolset, json!({"query": "calculate read"}));
    assert!(said.contains("No tool fits these words"), "{said}");
    assert!(toolset.get("calculate").is_none() && toolset.get("mcp__fs__tool_15").is_none());
    let few = Selection::named(catalogue, ["calculate", "mcp__fs__tool_1", "gone"]);
    assert_eq!(few.specs().len(), 2);
    assert_eq!(names(&Toolset::new(few, Vec::new())), ["calculate", "mcp__fs__tool_1"]);
}

#[test]
fn without_the_search_all_are_shown() {
    let mut specs = many(20);
    specs.retain(|spec| spec.mode != ToolMode::SearchTools);
    assert_eq!(toolset(&catalogue(specs, 8, 100)).offered().len(), 24);
    assert_eq!(toolset(&catalogue(many(20), 0, 0)).offered().len(), 24, "0 is no bound");
}

#[test]
fn the_clients_tools_come_first_and_hide_the_servers() {
    let catalogue = catalogue(many(20), 8, 0);
    let selection = Selection::all(catalogue).without(&["calculate", "other"].into());
    let client = ToolSchema {
        name: "calculate".to_owned(),
        description: String::new(),
        parameters: json!({}).into(),
        strict: None,
    };
    let mut toolset = Toolset::new(selection, Vec::new()).with_client(vec![Arc::new(client)]);
    assert!(toolset.get("calculate").is_none());
    ask(&mut toolset, json!({"query": "number1", "count": 1}));
    assert_eq!(
        names(&toolset),
        ["calculate", "read_text", "list_files", "last_output", "search_tools", "mcp__fs__tool_1"]
    );
}

#[test]
fn a_history_says_what_was_found_and_used() {
    let catalogue = catalogue(many(20), 10, 0);
    let call = |name: &str, arguments: Value| {
        let arguments = match arguments {
            Value::Object(map) => Arguments::Object(map),
            _ => Arguments::Object(Map::new()),
        };
        Message::Assistant {
            text: String::new(),
            calls: vec![ToolCall { id: CallId::new("c"), name: name.to_owned(), arguments }],
        }
    };
    let history = [
        call("search_tools", json!({"query": "number4 number5"})),
        call("mcp__fs__tool_9", json!({})),
        call("search_tools", json!({"query": 7})),
        call("mcp__fs__gone", json!({})),
        Message::human("and now?"),
    ];
    let mut again = toolset(&catalogue);
    again.find_again(&history);
    let mut first = toolset(&catalogue);
    ask(&mut first, json!({"query": "number4 number5"}));
    first.find("mcp__fs__tool_9");
    first.take_in();
    assert_eq!(first.found().count(), 3);
    assert_eq!(again.found().collect::<Vec<_>>(), first.found().collect::<Vec<_>>());
}
