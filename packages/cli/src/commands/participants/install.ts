import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";

export function participantsInstall(context: CommandContext): Command {
  const command = new Command("install")
    .description("install the participants of a file, or their new revisions")
    .argument("<file>", "a module (.ts, .js) that exports participants, or JSON with their artifacts")
    .addHelpText(
      "after",
      `
Running services keep the revision they were deployed with; \`trellis svc apply <deployment>\` moves one on.

Examples:
  trellis participants install contracts/orders.ts
  trellis participants install orders.artifact.json --credential admin.json`,
    );
  return onPlatform(command).action(async (file: string, options: PlatformOptions) => {
    const { loadParticipants } = await import("../../contract/load-participants.ts");
    const loaded = await loadParticipants(file, context.folder);
    await withCore(context, options, async (core) => {
      const { terminal } = context;
      const results = [];
      for (const { artifact } of loaded) {
        const { participant, changed } = await core.rpc.core.participantsInstall({ artifact }).orThrow();
        results.push({ ...participant, changed });
        if (terminal.json) continue;
        const { id, revision } = participant;
        const mark = changed ? terminal.colours.green("+") : terminal.colours.dim("=");
        terminal.line(`${mark} ${id}  revision ${revision}${changed ? "" : " (was installed already)"}`);
      }
      if (terminal.json) terminal.value(results);
    });
  });
}
