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

/** Finds the action that a name means among the APIs that are deployed. */
export function findAction(apis: readonly ApiRow[], name: string): FoundAction {
  const { api: wantedApi, action = name } = qualified.exec(name)?.groups ?? {};
  const among = wantedApi === undefined ? apis : apis.filter(({ id }) => id === wantedApi);
  if (among.length === 0 && wantedApi !== undefined) throw unknownApi(apis, wantedApi);
  const found = among.filter(({ rpc }) => rpc.includes(action));
  const [only, ...others] = found;
  if (only === undefined) throw unknownAction(among, action);
  if (others.length === 0) return { api: only, action };
  const choices = found.map(({ id }) => `${id}.${action}`);
  throw new CliFailure(`Several APIs have an action ${action}.`, {
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

function unknownAction(apis: readonly ApiRow[], action: string): CliFailure {
  const own = apis.filter(({ id }) => !id.startsWith("trellis."));
  const all = apis.flatMap(({ rpc }) => rpc);
  const listed = own.flatMap(({ rpc }) => rpc).slice(0, 12);
  const there = listed.length === 0 ? "No service is deployed yet." : `There is: ${listed.join(", ")}`;
  return new CliFailure(`Nothing that is deployed has an action ${action}.`, {
    exitCode: EXIT.notFound,
    hint: suggestion(action, all) ?? there,
  });
}

function suggestion(wrong: string, known: readonly string[]): string | undefined {
  const near = similar(wrong, known);
  return near === undefined ? undefined : `Did you mean ${near}?`;
}
