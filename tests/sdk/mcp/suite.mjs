// The TypeScript SDK, the inspector's command line, the page for people and the conformance suite against a running
// daemon.
//
// node suite.mjs URL KEY DOOR_PORT PYTHON -- PROGRAM ARGUMENTS…   (what starts the server on standard input)
import path from "node:path";

import { check, count, equal, holds, modules, node, run } from "./checks.mjs";
import { clients } from "./clients.mjs";
import { conformance } from "./conformance.mjs";
import { page } from "./page.mjs";

const [url, key, doorPort, python, , program, ...programArguments] = process.argv.slice(2);
const bearer = `Bearer ${key}`;

async function inspected(target, ...more) {
  const inspector = path.join(modules, ".bin", "mcp-inspector");
  const { code, output, complaint } = await run(node, [inspector, "--cli", ...target, ...more]);
  holds(code === 0, complaint.slice(-300));
  return JSON.parse(output.slice(output.indexOf("{")));
}

async function inspector() {
  const ours = Object.entries(process.env).filter(([name]) => name.startsWith("TIDEGATE_"));
  const local = [...ours.flatMap(([name, value]) => ["-e", `${name}=${value}`]), program, ...programArguments];
  const remote = [url, "--header", `Authorization: ${bearer}`];
  for (const [title, target] of [
    ["inspector over HTTP", remote],
    ["inspector over standard input", local],
  ]) {
    await check(`${title}: tools are listed`, async () => {
      const { tools } = await inspected(target, "--method", "tools/list");
      holds(tools.some((tool) => tool.name === "calculate"), JSON.stringify(tools));
    });
  }
  await check("inspector over HTTP: a tool is called", async () => {
    const call = ["--method", "tools/call", "--tool-name", "calculate", "--tool-arg", "expression=6*7"];
    const result = await inspected(remote, ...call);
    equal(result.content[0].text, "42");
  });
  await check("inspector over HTTP: prompts are listed", async () => {
    const { prompts } = await inspected(remote, "--method", "prompts/list");
    holds(prompts.length > 0, "there are none");
  });
}

await clients(url, bearer, program, programArguments);
await inspector();
await page(url, key, program, programArguments, python);
await conformance(url, bearer, doorPort);

console.log(`${count.passed} passed, ${count.failed} failed`);
process.exit(count.failed === 0 ? 0 : 1);
