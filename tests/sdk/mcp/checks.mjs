// Cases that are counted, and programs that are run to their end.
import { spawn } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const here = path.dirname(fileURLToPath(import.meta.url));
export const modules = path.join(here, "node_modules");
// The tools need a newer Node than may be installed.
export const node = path.join(modules, "node", "bin", "node");

export const count = { passed: 0, failed: 0 };

export async function check(name, run) {
  try {
    await run();
    count.passed += 1;
    console.log(`ok    ${name}`);
  } catch (error) {
    count.failed += 1;
    console.log(`FAIL  ${name}: ${error?.message ?? error}`);
  }
}

export function equal(found, expected) {
  if (JSON.stringify(found) !== JSON.stringify(expected)) {
    throw new Error(`found ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
  }
}

export function holds(condition, what) {
  if (!condition) throw new Error(what);
}

export async function fails(promise, what) {
  const failed = await promise.then(
    () => false,
    () => true,
  );
  holds(failed, what);
}

export function run(command, commandArguments, env = process.env) {
  return new Promise((done, fail) => {
    const child = spawn(command, commandArguments, { cwd: here, env, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", (data) => (output += data));
    let complaint = "";
    child.stderr.on("data", (data) => (complaint += data));
    child.on("error", fail);
    child.on("close", (code) => done({ code, output, complaint }));
  });
}
