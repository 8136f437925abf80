import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { basename, resolve } from "node:path";
import { CHUNK_BYTES } from "@trellis/control-plane/core";
import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { EXIT } from "../../exit-code.ts";
import { CliFailure } from "../../failure.ts";
import { onResource, storeArgument } from "../../platform/resource-place.ts";

interface Options extends PlatformOptions {
  readonly type?: string;
}

export function storePut(context: CommandContext): Command {
  const command = new Command("put")
    .description("copy a file into a store")
    .argument(...storeArgument)
    .argument("<file>", "- is standard input")
    .argument("[key]", "what it is called there; default: the name of the file")
    .option("--type <type>", "its content type, for instance image/jpeg")
    .addHelpText(
      "after",
      `
The object is there once all bytes are and their digest is that of the file; until then the one before is.

Examples:
  trellis store put acme.field/photos oslo.jpg 2026/oslo.jpg --type image/jpeg
  pg_dump crm | trellis store put acme.field/backups - crm.sql`,
    );
  return onPlatform(command).action(
    (...given: [text: string, file: string, key: string | undefined, options: Options]) => {
      const [text, file, key, options] = given;
      if (file === "-" && key === undefined) {
        throw new CliFailure("What comes from standard input has no name.", {
          exitCode: EXIT.usage,
          hint: `Say what it is called: trellis store put ${text} - <key>`,
        });
      }
      const name = key ?? basename(file);
      return withCore(context, options, (core) =>
        onResource(core, { kind: "store", text }, async (place) => {
          const { terminal } = context;
          const source =
            file === "-" ? { pieces: context.stdin, size: 0 } : await openFile(resolve(context.folder, file));
          const contentType = options.type === undefined ? {} : { contentType: options.type };
          const hash = createHash("sha256");
          let transfer = {};
          let offset = 0;
          for await (const { data, last } of chunks(source.pieces)) {
            hash.update(data);
            const digest = last ? { digest: `SHA-256=${hash.digest("base64url")}` } : {};
            const piece = { offset, data: data.toString("base64"), ...digest, ...contentType, ...transfer };
            const written = await core.rpc.resources.storeWrite({ ...place, key: name, ...piece }).orThrow();
            offset += data.length;
            transfer = { transfer: written.transfer };
            terminal.progress(offset, source.size);
            if (written.object === undefined) continue;
            if (terminal.json) return terminal.value(written.object);
            terminal.line(`${name} is in ${text}`);
          }
        }),
      );
    },
  );
}

async function openFile(path: string): Promise<{ pieces: AsyncIterable<unknown>; size: number }> {
  try {
    const handle = await open(path);
    const { size } = await handle.stat();
    return { pieces: handle.createReadStream({ highWaterMark: CHUNK_BYTES }), size };
  } catch (cause) {
    throw new CliFailure(`${path} cannot be read.`, { exitCode: EXIT.usage, cause });
  }
}

/** Pieces of the size that a call carries; the last one says so, also when it is empty. */
async function* chunks(source: AsyncIterable<unknown>): AsyncGenerator<{ data: Buffer; last: boolean }> {
  let held: Buffer = Buffer.alloc(0);
  for await (const piece of source) {
    held = Buffer.concat([held, Buffer.from(piece as Uint8Array)]);
    while (held.length > CHUNK_BYTES) {
      yield { data: held.subarray(0, CHUNK_BYTES), last: false };
      held = held.subarray(CHUNK_BYTES);
    }
  }
  yield { data: held, last: true };
}
