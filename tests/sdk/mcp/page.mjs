// What stands on the page for people, word by word but for the address, the folder and the program's place.
import fs from "node:fs";
import path from "node:path";

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { check, equal, here, holds, modules, run } from "./checks.mjs";

// The page's fenced blocks of that language.
function blocks(page, language) {
  return [...page.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].filter((block) => block[1] === language).map((block) => block[2]);
}

export async function page(url, key, program, programArguments, python) {
  const text = fs.readFileSync(path.join(here, "mcp-server.md"), "utf8").replaceAll("http://127.0.0.1:8088/mcp", url);
  const env = {
    ...process.env,
    TIDEGATE_KEY: key,
    PATH: [path.join(modules, "node", "bin"), path.join(modules, ".bin"), process.env.PATH].join(path.delimiter),
  };

  const looks = blocks(text, "sh").filter((block) => block.includes("inspector"));
  await check("the page: the inspector's lines", async () => {
    equal(looks.length, 1);
    const { code, output, complaint } = await run("bash", ["-euc", looks[0]], env);
    holds(code === 0, complaint.slice(-300));
    holds(output.includes('"calculate"') && output.includes('"42"') && output.includes("kb:///hours.md"), output.slice(-500));
  });

  for (const [language, command, file] of [
    ["js", "node", "page-client.mjs"],
    ["python", python, "page-client.py"],
  ]) {
    await check(`the page: the ${language} client`, async () => {
      const [block, ...more] = blocks(text, language);
      equal(more, []);
      fs.writeFileSync(path.join(here, file), block);
      const { code, output, complaint } = await run(command, [file], env);
      holds(code === 0, complaint.slice(-600));
      holds(output.includes("ask_agent") && output.includes("Hello from the scripted model."), output);
    });
  }

  await check("the page: a client that starts the server itself", async () => {
    const entries = blocks(text, "json").map((block) => JSON.parse(block).mcpServers.tidegate);
    const { command, args, env: given } = entries.find((entry) => entry.command !== undefined);
    equal(command, "tidegate");
    const home = process.env.TIDEGATE_HOME;
    const file = path.join(home, "page.key");
    fs.writeFileSync(file, `${process.env.TIDEGATE_KEY}\n`, { mode: 0o600 });
    const ours = Object.fromEntries(
      Object.entries(given).map(([name, value]) => [name, value.replace("/home/ann/tidegate.key", file)]),
    );
    const client = new Client({ name: "page", version: "1" }, { versionNegotiation: { mode: "auto" } });
    const there = args.map((argument) => argument.replaceAll("/srv/tidegate", home));
    await client.connect(new StdioClientTransport({ command: program, args: there, env: ours }));
    const { tools } = await client.listTools();
    await client.close();
    holds(tools.some((tool) => tool.name === "ask_agent"), JSON.stringify(tools));
    equal(programArguments, ["mcp", "serve"]);
  });
}
