// The protocol's conformance suite: the release, and the one to come, which knows the newer generation.
import { once } from "node:events";
import http from "node:http";
import path from "node:path";

import { check, here, holds, modules, node, run } from "./checks.mjs";

// The suite has no way to send a key: a door on this machine adds it.
async function door(url, bearer, port) {
  const { hostname, port: target } = new URL(url);
  const server = http.createServer((request, response) => {
    const headers = { ...request.headers, authorization: bearer };
    const order = { hostname, port: target, path: request.url, method: request.method, headers };
    const onward = http.request(order, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  server.listen(Number(port), "127.0.0.1");
  await once(server, "listening");
  return server;
}

export async function conformance(url, bearer, port) {
  const server = await door(url, bearer, port);
  for (const [title, name, expected] of [
    ["conformance", "conformance", "conformance.yml"],
    ["conformance to come", "conformance-next", "conformance-next.yml"],
  ]) {
    const { code, output } = await run(node, [
      path.join(modules, "@modelcontextprotocol", name, "dist", "index.js"),
      ...["server", "--suite", "all", "--url", `http://127.0.0.1:${port}/mcp`],
      ...["--expected-failures", path.join(here, expected)],
    ]);
    for (const [, held] of output.matchAll(/^✓ ([a-z0-9-]+): [1-9]/gm)) {
      await check(`${title}: ${held}`, () => {});
    }
    // It also fails where something is expected to fail and does not.
    await check(`${title}: nothing else fails than what is expected to`, () => {
      holds(code === 0, output.slice(-800));
    });
  }
  server.close();
  server.closeAllConnections();
}
