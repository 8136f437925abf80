import process from "node:process";
import type { Platform } from "../platform.ts";
import { dialTcp } from "./dial.ts";
import { discoverSettings } from "./discover.ts";
import { postByNode } from "./http.ts";
import { nodePort } from "./port.ts";

/** Node: TCP to the broker, node:crypto, environment variables, stderr. */
export const platform: Platform = {
  port: nodePort,
  transport: "tcp",
  dial: dialTcp,
  post: postByNode,
  discover: () => discoverSettings(process.env, process.cwd()),
  logSink: {
    readable: process.stderr.isTTY === true && process.env["NODE_ENV"] !== "production",
    write: (line) => void process.stderr.write(line),
    now: () => Date.now(),
  },
  versions: { node: process.versions.node },
};
