import { err, ok } from "@trellis/result";
import type { Static } from "typebox";
import type { AuthorityArtifact } from "../authority/artifact.ts";
import { type DeploymentRow, deploymentRows } from "../storage/deployments.ts";
import type { CoreHandlersOf } from "./api.ts";
import { NotKnown } from "./errors.ts";
import type { CoreDeps } from "./handlers.ts";
import { nextCursor, readPage } from "./page.ts";
import type { ApiSchema } from "./schemas.ts";

type ApiPart = AuthorityArtifact["implements"][number];

interface Provided {
  view: Static<typeof ApiSchema>;
  /** Of the first provider that is not disabled, else of the first. */
  artifact: ApiPart;
}

/** What deployments provide: for tools that learn a contract only when they meet it. */
export function apiHandlers({ plane }: CoreDeps): CoreHandlersOf<"Apis"> {
  const { catalog, storage } = plane;
  const provided = async (): Promise<Provided[]> => {
    const found = new Map<string, Provided>();
    for (const row of await deploymentRows(storage.queries)) {
      const artifact = await catalog.artifact(storage.queries, row.participantId, row.participantDigest);
      for (const api of artifact?.implements ?? []) add(found, row, api);
    }
    return [...found.values()].sort((left, right) => (left.view.id < right.view.id ? -1 : 1));
  };
  return {
    "Core.Apis.List": async (input) => {
      const page = readPage("apis", input);
      if (page.isErr()) return err(page.error);
      const { limit, after } = page.value;
      const rest = (await provided()).filter(({ view }) => after === undefined || view.id > after);
      const apis = rest.slice(0, limit).map(({ view }) => view);
      const next = rest.length > limit ? apis.at(-1)?.id : undefined;
      return ok({ apis, ...nextCursor("apis", next) });
    },

    "Core.Apis.Get": async (input) => {
      const api = (await provided()).find(({ view }) => view.id === input.id);
      if (api === undefined) return err(new NotKnown({ data: { kind: "API", id: input.id } }));
      return ok({ api: api.view, artifact: { ...api.artifact } });
    },
  };
}

function add(found: Map<string, Provided>, row: DeploymentRow, api: ApiPart): void {
  const { id: deployment, name, participantId: participant } = row;
  const provider = { deployment, name, participant, disabled: row.disabled === 1 };
  const known = found.get(api.id);
  if (known === undefined) {
    const view = { id: api.id, ...namesOf(api), providers: [provider] };
    found.set(api.id, { view, artifact: api });
    return;
  }
  if (known.view.providers.every(({ disabled }) => disabled) && !provider.disabled) {
    known.artifact = api;
    Object.assign(known.view, namesOf(api));
  }
  known.view.providers.push(provider);
}

function namesOf({ rpc, feeds }: ApiPart): Pick<Provided["view"], "rpc" | "feeds"> {
  return { rpc: Object.keys(rpc).sort(), feeds: Object.keys(feeds).sort() };
}
