"""The official Python SDK against a running daemon.

    suite.py BASE_URL KEY scripted    exact cases, behind the scripted model server
    suite.py BASE_URL KEY real        a short conversation, behind a real small model

Started by `cargo xtask test`. Prints a line per case and, last, `N passed, N failed`.
"""

import sys
import traceback

import openai

QUESTION = [{"role": "user", "content": "hello"}]
HELLO = "Hello from the scripted model."
WEATHER_TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def chat_whole(client):
    answer = client.chat.completions.create(model="tidegate", messages=QUESTION)
    assert answer.object == "chat.completion"
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content == HELLO
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.usage.completion_tokens == 5


def chat_stream(client):
    chunks = list(client.chat.completions.create(model="tidegate", messages=QUESTION, stream=True))
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == HELLO
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices[0].finish_reason] == ["stop"]
    assert all(chunk.usage is None for chunk in chunks)


def usage_chunk(client):
    stream = client.chat.completions.create(
        model="tidegate", messages=QUESTION, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == 5
    assert all(chunk.usage is None for chunk in chunks[:-1])


def tools_handed_back(client):
    messages = [{"role": "user", "content": "What is the weather in Paris?"}]
    first = client.chat.completions.create(model="tidegate", messages=messages, tools=[WEATHER_TOOL])
    assert first.choices[0].finish_reason == "tool_calls"
    call = first.choices[0].message.tool_calls[0]
    assert call.function.name == "get_weather"
    assert "Paris" in call.function.arguments
    messages += [first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "18 C, sunny"}]
    second = client.chat.completions.create(model="tidegate", messages=messages, tools=[WEATHER_TOOL])
    assert second.choices[0].message.content == "The tool said: 18 C, sunny"


def tools_handed_back_in_a_stream(client):
    stream = client.chat.completions.create(
        model="tidegate",
        messages=[{"role": "user", "content": "What is the weather in Paris?"}],
        tools=[WEATHER_TOOL],
        stream=True,
    )
    name, arguments, finish = "", "", None
    for chunk in stream:
        finish = chunk.choices[0].finish_reason or finish
        for call in chunk.choices[0].delta.tool_calls or []:
            assert call.index == 0
            name += call.function.name or ""
            arguments += call.function.arguments or ""
    assert (name, finish) == ("get_weather", "tool_calls")
    assert "Paris" in arguments


def server_tool(client):
    answer = client.chat.completions.create(
        model="tidegate", messages=[{"role": "user", "content": "Please calculate 19 plus 23."}]
    )
    assert answer.choices[0].finish_reason == "stop"
    assert "42" in answer.choices[0].message.content
    assert not answer.choices[0].message.tool_calls


def models(client):
    names = [model.id for model in client.models.list()]
    assert "tidegate" in names
    assert client.models.retrieve("tidegate").id == "tidegate"


def unknown_model(client):
    try:
        client.models.retrieve("no-such-model")
    except openai.NotFoundError as error:
        assert error.status_code == 404
        assert error.body["message"]
    else:
        raise AssertionError("an unknown model was found")


def wrong_key(client):
    try:
        client.with_options(api_key="wrong").models.list()
    except openai.AuthenticationError as error:
        assert error.code == "invalid_api_key"
    else:
        raise AssertionError("a wrong key was accepted")


def wrong_request(client):
    try:
        client.chat.completions.create(model="tidegate", messages=[])
    except openai.BadRequestError as error:
        assert error.param == "messages", error.param
        assert error.body["message"]
    else:
        raise AssertionError("an empty conversation was accepted")


def request_id(client):
    raw = client.chat.completions.with_raw_response.create(model="tidegate", messages=QUESTION)
    assert raw.headers.get("x-request-id")
    assert raw.parse().choices[0].message.content == HELLO


def upstream_failure(client):
    try:
        client.chat.completions.create(
            model="tidegate", messages=[{"role": "user", "content": "fail with 500"}], stream=False
        )
    except openai.InternalServerError as error:
        assert error.status_code in (500, 502, 503)
        assert error.body["message"]
    else:
        raise AssertionError("a failing model gave an answer")


def real_conversation(client):
    # So small a model cannot be held to its words: what is held is that each turn ends properly.
    messages = [{"role": "user", "content": "Which files are there?"}]
    answer = client.chat.completions.create(model="tidegate", messages=messages, max_tokens=64, temperature=0)
    choice = answer.choices[0]
    assert choice.finish_reason in ("stop", "length"), choice.finish_reason
    assert choice.message.content
    assert not choice.message.tool_calls
    assert answer.usage.completion_tokens > 0
    messages += [choice.message, {"role": "user", "content": "Thank you. Say goodbye."}]
    stream = client.chat.completions.create(
        model="tidegate",
        messages=messages,
        max_tokens=48,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert chunks[-1].usage.completion_tokens > 0


SUITES = {
    "scripted": [
        chat_whole,
        chat_stream,
        usage_chunk,
        tools_handed_back,
        tools_handed_back_in_a_stream,
        server_tool,
        models,
        unknown_model,
        wrong_key,
        wrong_request,
        request_id,
        upstream_failure,
    ],
    "real": [real_conversation],
}


def main() -> int:
    base_url, key, suite = sys.argv[1:]
    client = openai.OpenAI(base_url=base_url, api_key=key, max_retries=0, timeout=120)
    failed = 0
    for case in SUITES[suite]:
        try:
            case(client)
            print(f"ok   {case.__name__}", flush=True)
        except Exception:
            failed += 1
            print(f"FAIL {case.__name__}", flush=True)
            traceback.print_exc(file=sys.stdout)
    print(f"{len(SUITES[suite]) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
