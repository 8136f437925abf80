import { NotKnown } from "@trellis/control-plane/core";
import { EXIT } from "../exit-code.ts";
import { CliFailure } from "../failure.ts";
import { similar } from "../output/similar.ts";
import type { CoreClient } from "./connect-core.ts";
import { allPages } from "./pages.ts";

/** The argument that names a bucket, and that which names a store: how it is written, and what it is. */
export const bucketArgument = ["<deployment/alias>", "the bucket, for instance acme.field/sites"] as const;
export const storeArgument = ["<deployment/alias>", "the store, for instance acme.field/photos"] as const;

/** A resource of a deployment, written `acme.field/photos`. */
export interface Place {
  readonly deployment: string;
  readonly alias: string;
}

export type ResourceRow = Awaited<ReturnType<typeof listResources>>[number];

export function listResources({ rpc }: CoreClient, deployment?: string) {
  const filter = deployment === undefined ? {} : { deployment };
  return allPages(async (at) => {
    const { resources: rows, ...next } = await rpc.resources.list({ ...at, ...filter }).orThrow();
    return { rows, ...next };
  });
}

export function placeOf(text: string): Place {
  const [deployment = "", alias = "", ...more] = text.split("/");
  if (deployment !== "" && alias !== "" && more.length === 0) return { deployment, alias };
  throw new CliFailure(`"${text}" does not name a resource.`, {
    exitCode: EXIT.usage,
    hint: "Write <deployment>/<alias>, for instance acme.field/photos. `trellis resources ls` lists them.",
  });
}

/** Runs a piece of work on a resource; when there is none of that name, says which one could have been meant. */
export async function onResource<T>(
  core: CoreClient,
  { kind, text }: { readonly kind: ResourceRow["kind"]; readonly text: string },
  work: (place: Place) => Promise<T>,
): Promise<T> {
  const place = placeOf(text);
  try {
    return await work(place);
  } catch (error) {
    const missing =
      error instanceof NotKnown && (error.data.kind === "deployment" || error.data.kind === kind);
    if (!missing) throw error;
    const known = (await listResources(core))
      .filter((row) => row.kind === kind)
      .map(({ service, alias }) => `${service}/${alias}`);
    const near = similar(text, known);
    const some = known.slice(0, 12).join(", ");
    const there = some === "" ? `No deployment has a ${kind}.` : `There is: ${some}`;
    throw new CliFailure(error.message, {
      exitCode: EXIT.notFound,
      hint: near === undefined ? there : `Did you mean ${near}?`,
      cause: error,
    });
  }
}
