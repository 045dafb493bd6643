// The TypeScript SDK in both its lines: the older one, which many clients are built on, and the newer one, in both
// generations of the protocol.
import * as newer from "@modelcontextprotocol/client";
import { StdioClientTransport as NewerStdio } from "@modelcontextprotocol/client/stdio";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

import { check, equal, fails, holds } from "./checks.mjs";

const name = { name: "suite", version: "1" };
const yes = { action: "accept", content: { approve: true } };

function older(asks) {
  const client = new Client(name, { capabilities: asks ? { elicitation: {} } : {} });
  if (asks) client.setRequestHandler(ElicitRequestSchema, () => yes);
  return client;
}

function newerIn(mode) {
  return (asks) => {
    const capabilities = asks ? { elicitation: {} } : {};
    const client = new newer.Client(name, { capabilities, versionNegotiation: { mode } });
    if (asks) client.setRequestHandler("elicitation/create", () => yes);
    return client;
  };
}

const lines = [
  { title: "SDK 1", make: older, http: StreamableHTTPClientTransport, stdio: StdioClientTransport },
  { title: "SDK 2", make: newerIn("legacy"), http: newer.StreamableHTTPClientTransport, stdio: NewerStdio },
  {
    title: "SDK 2, 2026-07-28",
    make: newerIn({ pin: "2026-07-28" }),
    http: newer.StreamableHTTPClientTransport,
    stdio: NewerStdio,
  },
];

async function common(title, client) {
  await check(`${title}: tools are listed`, async () => {
    const { tools } = await client.listTools();
    const names = tools.map((tool) => tool.name);
    holds(names.includes("ask_agent") && names.includes("search_knowledge_base"), names.join());
  });
  await check(`${title}: a tool is called`, async () => {
    const result = await client.callTool({ name: "calculate", arguments: { expression: "6*7" } });
    equal(result.content, [{ type: "text", text: "42" }]);
  });
  await check(`${title}: a tool that does not exist is an error`, () =>
    fails(client.callTool({ name: "no_such_tool", arguments: {} }), "it was called"),
  );
  await check(`${title}: a document is listed and read`, async () => {
    const uri = "kb:///hours.md";
    const isThere = async () => (await client.listResources()).resources.some((one) => one.uri === uri);
    for (let tries = 0; tries < 200 && !(await isThere()); tries += 1) {
      await new Promise((done) => setTimeout(done, 100));
    }
    const { contents } = await client.readResource({ uri });
    holds(contents[0].text.includes("open from 8 to 16"), contents[0].text);
  });
  await check(`${title}: a skill is a prompt`, async () => {
    const { prompts } = await client.listPrompts();
    holds(prompts.some((prompt) => prompt.name === "short-notes"), JSON.stringify(prompts));
    const { messages } = await client.getPrompt({ name: "short-notes", arguments: { task: "this" } });
    holds(messages[0].content.text.endsWith("this"), JSON.stringify(messages));
  });
}

async function agent(title, client) {
  await check(`${title}: the agent answers and tells of its steps`, async () => {
    const told = [];
    const asked = { name: "ask_agent", arguments: { question: "Say hello." } };
    const onprogress = (progress) => told.push(progress.message);
    const result = title.startsWith("SDK 1")
      ? await client.callTool(asked, undefined, { onprogress })
      : await client.callTool(asked, { onprogress });
    holds(result.content[0].text.length > 0 && told.includes("answering"), JSON.stringify({ result, told }));
  });
  await check(`${title}: a person approves a call`, async () => {
    const result = await client.callTool({ name: "write_file", arguments: { path: "node.md", content: title } });
    equal(result.isError, false);
  });
  await check(`${title}: a person approves what the agent does`, async () => {
    const result = await client.callTool({ name: "ask_agent", arguments: { question: "save a note" } });
    holds(result.content[0].text.startsWith("The tool said"), JSON.stringify(result));
    equal(result.structuredContent.approvals, undefined);
  });
}

// Every line over HTTP and standard input.
export async function clients(url, bearer, program, programArguments) {
  const address = new URL(url);
  for (const { title, make, http, stdio } of lines) {
    const remote = make(true);
    await remote.connect(new http(address, { requestInit: { headers: { authorization: bearer } } }));
    await common(`${title} over HTTP`, remote);
    await agent(`${title} over HTTP`, remote);
    await remote.close();
    await check(`${title} over HTTP: without a key nobody connects`, () =>
      fails(make(false).connect(new http(address)), "it connected"),
    );
    const local = make(false);
    await local.connect(new stdio({ command: program, args: programArguments, env: process.env }));
    await common(`${title} over standard input`, local);
    await local.close();
  }
}
