import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";

export function participantsShow(context: CommandContext): Command {
  const command = new Command("show")
    .description("show one participant: what it provides and what it uses")
    .argument("<id>", "id of the participant, for example acme.orders-service")
    .addHelpText(
      "after",
      "\nExamples:\n  trellis participants show acme.orders-service\n  trellis participants show acme.orders-service --json | jq .artifact",
    );
  return onPlatform(command).action((id: string, options: PlatformOptions) =>
    withCore(context, options, async (core) => {
      const found = await core.rpc.core.participantsGet({ id }).orThrow();
      const { terminal } = context;
      if (terminal.json) return terminal.value(found);
      const { participant } = found;
      const { readParticipantArtifact } = await import("../../contract/artifact.ts");
      const artifact = readParticipantArtifact(found.artifact);
      terminal.line(
        `${terminal.colours.bold(participant.id)}  ${participant.kind}, revision ${participant.revision}`,
      );
      terminal.line(`digest  ${participant.digest}`);
      for (const api of artifact.implements) showApi(context, `provides ${api.id}`, Object.keys(api.rpc));
      for (const use of artifact.uses) showApi(context, `uses ${use.api}`, Object.keys(use.rpc));
    }),
  );
}

function showApi({ terminal }: CommandContext, heading: string, actions: readonly string[]): void {
  terminal.line(terminal.colours.bold(heading));
  for (const action of [...actions].sort()) terminal.line(`  ${action}`);
}
