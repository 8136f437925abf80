import { createHash } from "node:crypto";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { basename, resolve } from "node:path";
import type { Writable } from "node:stream";
import { NotKnown } from "@trellis/control-plane/core";
import { Command } from "commander";
import { type CommandContext, onPlatform, type PlatformOptions, withCore } from "../../context.ts";
import { EXIT } from "../../exit-code.ts";
import { CliFailure } from "../../failure.ts";
import { similar } from "../../output/similar.ts";
import type { CoreClient } from "../../platform/connect-core.ts";
import { onResource, type Place, storeArgument } from "../../platform/resource-place.ts";
import { objectsOf } from "./ls.ts";

export function storeGet(context: CommandContext): Command {
  const command = new Command("get")
    .description("copy an object into a file")
    .argument(...storeArgument)
    .argument("<key>")
    .argument("[file]", "where to; default: the last part of the key, in this folder; - is standard output")
    .addHelpText(
      "after",
      `
The file is there once all bytes are and their digest is the object's.

Examples:
  trellis store get acme.field/photos 2026/oslo.jpg
  trellis store get acme.field/photos report.json - | jq .`,
    );
  return onPlatform(command).action(
    (...given: [text: string, key: string, file: string | undefined, options: PlatformOptions]) => {
      const [text, key, file, options] = given;
      return withCore(context, options, (core) =>
        onResource(core, { kind: "store", text }, async (place) => {
          const { terminal } = context;
          const download = new Download(core, { place, key, text });
          if (file === "-") {
            await download.into(process.stdout, (done, total) => terminal.progress(done, total));
            return;
          }
          const path = resolve(context.folder, file ?? (basename(key) || "object"));
          const { size, digest } = await intoFile(download, path, (done, total) =>
            terminal.progress(done, total),
          );
          if (terminal.json) return terminal.value({ key, file: path, size, digest });
          terminal.line(`${key} is in ${path}`);
        }),
      );
    },
  );
}

type Progress = (done: number, total: number) => void;

/** Under another name until it is whole: what has the name is the object. */
async function intoFile(download: Download, path: string, progress: Progress) {
  const partial = `${path}.partial`;
  const stream = createWriteStream(partial, { mode: 0o600 });
  try {
    await once(stream, "open");
    const object = await download.into(stream, progress);
    stream.end();
    await once(stream, "close");
    await rename(partial, path);
    return object;
  } catch (error) {
    stream.destroy();
    await rm(partial, { force: true });
    throw error;
  }
}

/** Reads an object piece by piece, and proves it at the end. */
class Download {
  readonly #core: CoreClient;
  readonly #what: { readonly place: Place; readonly key: string; readonly text: string };

  constructor(core: CoreClient, what: { place: Place; key: string; text: string }) {
    this.#core = core;
    this.#what = what;
  }

  async into(out: Writable, progress: Progress): Promise<{ size: number; digest: string }> {
    const { place, key } = this.#what;
    const hash = createHash("sha256");
    for (let offset = 0, transfer = {}; ; ) {
      const read = await this.#core.rpc.resources.storeRead({ ...place, key, offset, ...transfer });
      if (read.isErr() && read.error instanceof NotKnown && read.error.data.kind === "object")
        throw await noObject(this.#core, this.#what);
      const piece = read.orThrow();
      const { size, digest } = piece.object;
      const data = Buffer.from(piece.data, "base64");
      hash.update(data);
      offset += data.length;
      transfer = { transfer: piece.transfer };
      if (!out.write(data)) await once(out, "drain");
      progress(offset, size);
      if (!piece.done) continue;
      if (digest.replace(/=+$/, "") === `SHA-256=${hash.digest("base64url")}`) return { size, digest };
      throw new CliFailure("The bytes that came are not those of the object.", { hint: "Try it again." });
    }
  }
}

/** The failure of a key that no object has, with the key that may have been meant. */
export async function noObject(
  core: CoreClient,
  { text, place, key }: { readonly text: string; readonly place: Place; readonly key: string },
): Promise<CliFailure> {
  const keys = (await objectsOf(core, place)).map((object) => object.key);
  const near = similar(key, keys);
  const hint =
    near === undefined ? `\`trellis store ls ${text}\` lists the objects.` : `Did you mean ${near}?`;
  return new CliFailure(`${text} has no object "${key}".`, { exitCode: EXIT.notFound, hint });
}
