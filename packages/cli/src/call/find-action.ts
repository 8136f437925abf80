import { EXIT } from "../exit-code.ts";
import { CliFailure } from "../failure.ts";
import { similar } from "../output/similar.ts";
import type { ApiRow } from "../platform/lists.ts";

/** Which action of which API is meant. */
export interface FoundAction {
  readonly api: ApiRow;
  readonly action: string;
}

/** `acme.orders@v1.Orders.Create`, also with a slash; the API is optional. */
const qualified = /^(?<api>[a-z][a-z0-9.-]*@v[0-9]+)[./](?<action>.+)$/;

/** What kind of action is meant: what is called, or what is opened. */
export type Kind = "rpc" | "feeds";

const words = {
  rpc: { one: "an action", none: "No service is deployed yet." },
  feeds: { one: "a feed", none: "No service that is deployed has a feed." },
} as const;

/** Finds the action that a name means among the APIs that are deployed. */
export function findAction(apis: readonly ApiRow[], name: string, kind: Kind = "rpc"): FoundAction {
  const { api: wantedApi, action = name } = qualified.exec(name)?.groups ?? {};
  const among = wantedApi === undefined ? apis : apis.filter(({ id }) => id === wantedApi);
  if (among.length === 0 && wantedApi !== undefined) throw unknownApi(apis, wantedApi);
  const found = among.filter((api) => api[kind].includes(action));
  const [only, ...others] = found;
  if (only === undefined) throw unknownAction(among, action, kind);
  if (others.length === 0) return { api: only, action };
  const choices = found.map(({ id }) => `${id}.${action}`);
  throw new CliFailure(`Several APIs have ${words[kind].one} ${action}.`, {
    exitCode: EXIT.usage,
    hint: `Name one: ${choices.join(", ")}`,
  });
}

function unknownApi(apis: readonly ApiRow[], id: string): CliFailure {
  const known = apis.map((api) => api.id);
  return new CliFailure(`Nothing that is deployed provides ${id}.`, {
    exitCode: EXIT.notFound,
    hint: suggestion(id, known) ?? `There is: ${known.join(", ")}`,
  });
}

function unknownAction(apis: readonly ApiRow[], action: string, kind: Kind): CliFailure {
  const own = apis.filter(({ id }) => !id.startsWith("trellis."));
  const all = apis.flatMap((api) => api[kind]);
  const listed = own.flatMap((api) => api[kind]).slice(0, 12);
  const there = listed.length === 0 ? words[kind].none : `There is: ${listed.join(", ")}`;
  return new CliFailure(`Nothing that is deployed has ${words[kind].one} ${action}.`, {
    exitCode: EXIT.notFound,
    hint: suggestion(action, all) ?? there,
  });
}

function suggestion(wrong: string, known: readonly string[]): string | undefined {
  const near = similar(wrong, known);
  return near === undefined ? undefined : `Did you mean ${near}?`;
}
