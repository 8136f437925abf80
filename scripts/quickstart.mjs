// From a bare clone to a platform, two services and their first calls: `npm run quickstart`.
import process from "node:process";
import { fail, setUp } from "./lib/setup.mjs";

const help = `Usage: npm run quickstart [-- --once]

Sets up what is missing, starts a platform of its own in a temporary folder and the two services of
examples/01-hello, calls them, and tells what happened. On a terminal it then stays up until Ctrl-C, so that you
can go on with \`npx trellis\`.

Options:
  --once      end after the tour, also on a terminal
  -h, --help  show this
`;

const args = process.argv.slice(2);
if (args.includes("--help") || args.includes("-h")) {
  process.stdout.write(help);
  process.exit(0);
}
const unknown = args.find((arg) => arg !== "--once");
if (unknown !== undefined) fail(`${unknown} is not an option.`, "npm run quickstart -- --help");

await setUp();
const { useSources } = await import("../packages/cli/bin/use-sources.mjs");
useSources();
const { quickstart } = await import("./quickstart/quickstart.ts");
process.exit(await quickstart({ once: args.includes("--once") || !process.stdout.isTTY }));
