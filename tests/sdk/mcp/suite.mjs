// The TypeScript SDK, the inspector's command line and the conformance suite against a running daemon.
//
// node suite.mjs URL KEY PROXY_PORT -- PROGRAM ARGUMENTS…   (what starts the server on standard input)
import { spawn } from "node:child_process";
import { once } from "node:events";
import http from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [url, key, proxyPort, , program, ...programArguments] = process.argv.slice(2);
const here = path.dirname(fileURLToPath(import.meta.url));
const modules = path.join(here, "node_modules");
// The tools need a newer Node than may be installed.
const node = path.join(modules, "node", "bin", "node");
const bearer = `Bearer ${key}`;

let passed = 0;
let failed = 0;

async function check(name, run) {
  try {
    await run();
    passed += 1;
    console.log(`ok    ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL  ${name}: ${error?.message ?? error}`);
  }
}

function equal(found, expected) {
  if (JSON.stringify(found) !== JSON.stringify(expected)) {
    throw new Error(`found ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
  }
}

function holds(condition, what) {
  if (!condition) throw new Error(what);
}

function client(answer) {
  const asking = answer !== undefined;
  const made = new Client({ name: "suite", version: "1" }, { capabilities: asking ? { elicitation: {} } : {} });
  if (asking) made.setRequestHandler(ElicitRequestSchema, () => answer);
  return made;
}

function overHttp() {
  return new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { authorization: bearer } } });
}

async function common(name, connected) {
  await check(`${name}: tools are listed`, async () => {
    const { tools } = await connected.listTools();
    const names = tools.map((tool) => tool.name);
    holds(names.includes("ask_agent") && names.includes("search_knowledge_base"), names.join());
  });
  await check(`${name}: a tool is called`, async () => {
    const result = await connected.callTool({ name: "calculate", arguments: { expression: "6*7" } });
    equal(result.content, [{ type: "text", text: "42" }]);
  });
  await check(`${name}: a tool that does not exist is an error`, async () => {
    const refused = await connected.callTool({ name: "no_such_tool", arguments: {} }).then(
      () => false,
      () => true,
    );
    holds(refused, "it was called");
  });
  await check(`${name}: a document is listed and read`, async () => {
    const uri = "kb:///hours.md";
    const isThere = async () => (await connected.listResources()).resources.some((one) => one.uri === uri);
    for (let tries = 0; tries < 200 && !(await isThere()); tries += 1) {
      await new Promise((done) => setTimeout(done, 100));
    }
    const { contents } = await connected.readResource({ uri });
    holds(contents[0].text.includes("open from 8 to 16"), contents[0].text);
  });
  await check(`${name}: prompts are listed`, async () => {
    holds(Array.isArray((await connected.listPrompts()).prompts), "no list");
  });
}

function run(command, commandArguments) {
  return new Promise((done, fail) => {
    const child = spawn(command, commandArguments, { cwd: here, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", (data) => (output += data));
    let complaint = "";
    child.stderr.on("data", (data) => (complaint += data));
    child.on("error", fail);
    child.on("close", (code) => done({ code, output, complaint }));
  });
}

const inspector = path.join(modules, ".bin", "mcp-inspector");

async function inspected(target, ...more) {
  const { code, output, complaint } = await run(node, [inspector, "--cli", ...target, ...more]);
  holds(code === 0, complaint.slice(-300));
  return JSON.parse(output.slice(output.indexOf("{")));
}

// The conformance suite has no way to send a key: a door on this machine adds it.
async function door() {
  const server = http.createServer((request, response) => {
    const { hostname, port } = new URL(url);
    const headers = { ...request.headers, authorization: bearer };
    const onward = http.request({ hostname, port, path: request.url, method: request.method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  server.listen(Number(proxyPort), "127.0.0.1");
  await once(server, "listening");
  return server;
}

const http1 = client({ action: "accept", content: { approve: true } });
await http1.connect(overHttp());
await common("SDK over HTTP", http1);
await check("SDK over HTTP: the agent answers and tells of its steps", async () => {
  const told = [];
  const result = await http1.callTool({ name: "ask_agent", arguments: { question: "Say hello." } }, undefined, {
    onprogress: (progress) => told.push(progress.message),
  });
  holds(result.content[0].text.length > 0 && told.includes("answering"), JSON.stringify({ result, told }));
});
await check("SDK over HTTP: a person approves a call", async () => {
  const result = await http1.callTool({ name: "write_file", arguments: { path: "node.md", content: "x" } });
  equal(result.isError, false);
});
await http1.close();
await check("SDK over HTTP: without a key nobody connects", async () => {
  const refused = await client()
    .connect(new StreamableHTTPClientTransport(new URL(url)))
    .then(
      () => false,
      () => true,
    );
  holds(refused, "it connected");
});

const local = client();
await local.connect(new StdioClientTransport({ command: program, args: programArguments, env: process.env }));
await common("SDK over standard input", local);
await local.close();

const remote = [url, "--header", `Authorization: ${bearer}`];
await check("inspector over HTTP: tools are listed", async () => {
  const { tools } = await inspected(remote, "--method", "tools/list");
  holds(tools.some((tool) => tool.name === "calculate"), JSON.stringify(tools));
});
await check("inspector over HTTP: a tool is called", async () => {
  const result = await inspected(
    remote,
    ...["--method", "tools/call", "--tool-name", "calculate", "--tool-arg", "expression=6*7"],
  );
  equal(result.content[0].text, "42");
});
await check("inspector over HTTP: documents are listed", async () => {
  const { resources } = await inspected(remote, "--method", "resources/list");
  holds(resources.length > 0, "there are none");
});
await check("inspector over standard input: tools are listed", async () => {
  const target = [program, ...programArguments];
  const ours = Object.entries(process.env).filter(([name]) => name.startsWith("TIDEGATE_"));
  const passedOn = ours.flatMap(([name, value]) => ["-e", `${name}=${value}`]);
  const { tools } = await inspected(passedOn, ...target, "--method", "tools/list");
  holds(tools.some((tool) => tool.name === "calculate"), JSON.stringify(tools));
});

const server = await door();
const conformance = path.join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js");
const { code, output } = await run(node, [
  conformance,
  ...["server", "--url", `http://127.0.0.1:${proxyPort}/mcp`],
  ...["--expected-failures", path.join(here, "conformance.yml")],
]);
server.close();
server.closeAllConnections();
for (const [, sign, name] of output.matchAll(/^([✓✗]) ([a-z0-9-]+): /gm)) {
  if (sign === "✓") {
    await check(`conformance: ${name}`, () => {});
  }
}
await check("conformance: nothing else fails than what is expected to", () => {
  holds(code === 0, output.slice(-800));
});

console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
