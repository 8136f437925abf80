import { readFileSync } from "node:fs";
import { EXIT } from "../exit-code.ts";
import { CliFailure } from "../failure.ts";
import { codeOf, othersCanRead, writePrivateFile } from "./private-file.ts";

/** An administrator's way in, as `trellis server init` writes it. Mode 0600: `seed` is the secret. */
export interface CredentialFile {
  readonly version: 1;
  readonly url: string;
  readonly root: string;
  readonly seed: string;
}

export function writeCredentialFile(path: string, content: CredentialFile): boolean {
  return writePrivateFile(path, `${JSON.stringify(content, undefined, 2)}\n`, { exclusive: true });
}

/** Reads a credential. Its text is never repeated in a message. `warn` hears of a file that others can read. */
export function readCredentialFile(path: string, warn: (text: string) => void): CredentialFile {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (cause) {
    throw new CliFailure(
      `The credential file ${path} cannot be read (${codeOf(cause) ?? "unknown error"}).`,
      {
        exitCode: EXIT.usage,
        hint: "`trellis server init` writes one; pass its path by --credential or TRELLIS_CREDENTIAL.",
        cause,
      },
    );
  }
  const content = parse(text);
  if (content === undefined) {
    throw new CliFailure(`${path} is not a credential file.`, {
      exitCode: EXIT.usage,
      hint: "It is JSON with version, url, root and seed, as `trellis server init` writes it.",
    });
  }
  if (othersCanRead(path)) warn(`The credential file ${path} can be read by others; run: chmod 600 ${path}`);
  return content;
}

function parse(text: string): CredentialFile | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { version, url, root, seed } = value as Record<string, unknown>;
  if (version !== 1 || typeof url !== "string" || typeof root !== "string" || typeof seed !== "string")
    return undefined;
  return { version, url, root, seed };
}
