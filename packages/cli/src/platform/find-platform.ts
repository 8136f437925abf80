import { EXIT } from "../exit-code.ts";
import { CliFailure } from "../failure.ts";
import { readCredentialFile } from "./credential-file.ts";
import { findDevFile } from "./dev-file.ts";

/** A platform and our way in: the dev token, or an administrator's seed. */
export interface FoundPlatform {
  readonly url: string;
  readonly root: string | undefined;
  readonly devToken: string | undefined;
  readonly seed: string | undefined;
  /** Where this was found, for people. */
  readonly source: string;
}

export interface FindPlatformInput {
  /** Path of a credential file, from the command line. */
  readonly credential: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly folder: string;
  /** Hears what should be put right but does not stop us. */
  warn(text: string): void;
}

/**
 * Which platform is meant: `--credential`, else TRELLIS_CREDENTIAL, else TRELLIS_URL with TRELLIS_DEV_TOKEN, else
 * the `trellis dev` of this folder or the nearest one above. The seed of a service in the environment is not ours
 * and is never used.
 */
export function findPlatform(input: FindPlatformInput): FoundPlatform {
  const { env } = input;
  const path = input.credential ?? (env["TRELLIS_CREDENTIAL"] || undefined);
  if (path !== undefined) {
    const { url, root, seed } = readCredentialFile(path, input.warn);
    return { url, root, seed, devToken: undefined, source: path };
  }
  const url = env["TRELLIS_URL"];
  return url === undefined || url === "" ? fromDevFile(input.folder) : fromEnvironment(url, env);
}

function fromEnvironment(url: string, env: NodeJS.ProcessEnv): FoundPlatform {
  const devToken = env["TRELLIS_DEV_TOKEN"];
  const root = env["TRELLIS_ROOT"] || undefined;
  if (devToken !== undefined && devToken !== "")
    return { url, root, devToken, seed: undefined, source: "TRELLIS_URL" };
  throw new CliFailure(`TRELLIS_URL says ${url}, but there is no credential for it.`, {
    exitCode: EXIT.noPlatform,
    hint: "Pass --credential <file> (written by `trellis server init`), or set TRELLIS_CREDENTIAL.",
  });
}

function fromDevFile(folder: string): FoundPlatform {
  const nearest = findDevFile(folder);
  if (nearest === undefined) {
    throw new CliFailure(`No platform was found: there is no .trellis/dev.json in ${folder} or above.`, {
      exitCode: EXIT.noPlatform,
      hint: "Start one here with `trellis dev`, or pass --credential <file> to reach a server.",
    });
  }
  const { path, found } = nearest;
  if (found.kind !== "ok") {
    const problem = found.kind === "damaged" ? found.problem : "is gone";
    throw new CliFailure(`${path} ${problem}.`, {
      exitCode: EXIT.noPlatform,
      hint: "Remove it and start `trellis dev` again.",
    });
  }
  const { url, root, token, pid } = found.content;
  if (!found.running) {
    throw new CliFailure(`The platform of ${path} (process ${pid}) does not run any more.`, {
      exitCode: EXIT.noPlatform,
      hint: "Start it again with `trellis dev`.",
    });
  }
  return { url, root, devToken: token, seed: undefined, source: path };
}
