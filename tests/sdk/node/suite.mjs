// The official Node SDK against a running daemon.
//
//     node suite.mjs BASE_URL KEY
//
// Started by `cargo xtask test`, behind the scripted model server. Prints a line per case and, last,
// `N passed, N failed`.

import assert from "node:assert/strict";
import OpenAI from "openai";

const [baseURL, apiKey] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0, timeout: 60_000 });
const messages = [{ role: "user", content: "hello" }];
const HELLO = "Hello from the scripted model.";
const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather of a city.",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};

async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

const cases = {
  async chatWhole() {
    const answer = await client.chat.completions.create({ model: "tidegate", messages });
    assert.equal(answer.choices[0].message.content, HELLO);
    assert.equal(answer.choices[0].finish_reason, "stop");
    assert.equal(answer.usage.completion_tokens, 5);
  },

  async chatStream() {
    const chunks = await collect(await client.chat.completions.create({ model: "tidegate", messages, stream: true }));
    assert.equal(chunks.map((chunk) => chunk.choices[0].delta.content ?? "").join(""), HELLO);
    assert.equal(chunks.at(-1).choices[0].finish_reason, "stop");
    assert.equal(new Set(chunks.map((chunk) => chunk.id)).size, 1);
  },

  async usageChunk() {
    const stream_options = { include_usage: true };
    const chunks = await collect(
      await client.chat.completions.create({ model: "tidegate", messages, stream: true, stream_options }),
    );
    assert.deepEqual(chunks.at(-1).choices, []);
    assert.equal(chunks.at(-1).usage.completion_tokens, 5);
  },

  async streamHelper() {
    const runner = client.chat.completions.stream({ model: "tidegate", messages });
    assert.equal(await runner.finalContent(), HELLO);
  },

  async toolsHandedBack() {
    const asked = [{ role: "user", content: "What is the weather in Paris?" }];
    const tools = [weather];
    const first = await client.chat.completions.create({ model: "tidegate", messages: asked, tools });
    assert.equal(first.choices[0].finish_reason, "tool_calls");
    const [call] = first.choices[0].message.tool_calls;
    assert.equal(call.function.name, "get_weather");
    assert.equal(JSON.parse(call.function.arguments).city, "Paris");
    const result = { role: "tool", tool_call_id: call.id, content: "18 C, sunny" };
    const second = await client.chat.completions.create({
      model: "tidegate",
      messages: [...asked, first.choices[0].message, result],
      tools,
    });
    assert.equal(second.choices[0].message.content, "The tool said: 18 C, sunny");
  },

  async runTools() {
    const tool = { ...weather, function: { ...weather.function, function: () => "18 C, sunny", parse: JSON.parse } };
    const runner = client.chat.completions.runTools({
      model: "tidegate",
      messages: [{ role: "user", content: "What is the weather in Paris?" }],
      tools: [tool],
    });
    assert.equal(await runner.finalContent(), "The tool said: 18 C, sunny");
  },

  async serverTool() {
    const answer = await client.chat.completions.create({
      model: "tidegate",
      messages: [{ role: "user", content: "Please calculate 19 plus 23." }],
    });
    assert.match(answer.choices[0].message.content, /42/);
  },

  async models() {
    const names = (await collect(client.models.list())).map((model) => model.id);
    assert.ok(names.includes("tidegate"));
    assert.equal((await client.models.retrieve("tidegate")).id, "tidegate");
  },

  async errors() {
    await assert.rejects(client.models.retrieve("no-such-model"), OpenAI.NotFoundError);
    await assert.rejects(client.withOptions({ apiKey: "wrong" }).models.list(), (error) => {
      assert.ok(error instanceof OpenAI.AuthenticationError);
      assert.equal(error.code, "invalid_api_key");
      return true;
    });
    await assert.rejects(client.chat.completions.create({ model: "tidegate", messages: [] }), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.equal(error.param, "messages");
      return true;
    });
  },

  async aborts() {
    const asked = [{ role: "user", content: "Count slowly." }];
    const stream = await client.chat.completions.create({ model: "tidegate", messages: asked, stream: true });
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content) break;
    }
    const answer = await client.chat.completions.create({ model: "tidegate", messages });
    assert.equal(answer.choices[0].message.content, HELLO);
  },
};

let failed = 0;
for (const [name, run] of Object.entries(cases)) {
  try {
    await run();
    console.log(`ok   ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}\n${error.stack}`);
  }
}
console.log(`${Object.keys(cases).length - failed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
