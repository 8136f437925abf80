import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { visible } from "../../output/visible.ts";
import { sequenceOf } from "./sequence.ts";

export function eventsDlqShow(context: CommandContext): Command {
  const command = new Command("show")
    .description("show one dead letter: why the event is there, and its payload")
    .argument("<deployment>", "name or id of the deployment")
    .argument("<consumer>", "the consumer, as the contract calls it")
    .argument("<sequence>", "the letter's number, from `trellis events dlq ls`", sequenceOf)
    .addHelpText(
      "after",
      "\nExamples:\n  trellis events dlq show acme.billing orders 4711 --json | jq .payload",
    );
  return onPlatform(command).action(
    (...[deployment, consumer, sequence, options]: [string, string, number, PlatformOptions]) =>
      withCore(context, options, async (core) => {
        const input = { deployment, consumer, sequence };
        const { deadLetter } = await core.rpc.events.deadLettersGet(input).orThrow();
        const { terminal } = context;
        if (terminal.json) return terminal.value(deadLetter);
        const { colours } = terminal;
        const line = (name: string, value: string) =>
          terminal.line(`${colours.dim(name.padEnd(10))}${visible(value)}`);
        line("event", `${deadLetter.event} of ${deadLetter.api}`);
        line("id", deadLetter.id);
        line("subject", deadLetter.subject);
        line("reason", deadLetter.reason);
        line("error", `${deadLetter.error.type}: ${deadLetter.error.message}`);
        line("attempts", String(deadLetter.attempts));
        line("stored", new Date(deadLetter.storedAt).toISOString());
        line("dead", new Date(deadLetter.at).toISOString());
        line("payload", deadLetter.payload ?? "not kept any more, or too large to show");
      }),
  );
}
