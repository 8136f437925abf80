import { err, ok } from "@trellis/result";
import type { Static } from "typebox";
import { isPlatformOwned } from "../authority/platform-access.ts";
import {
  chooseBinding,
  chosenBindings,
  type DeploymentRow,
  findDeploymentNamed,
  forgetBinding,
} from "../storage/deployments.ts";
import type { Queries } from "../storage/storage.ts";
import type { CoreHandlers } from "./api.ts";
import { BindingRefused, NotKnown } from "./errors.ts";
import type { CoreDeps } from "./handlers.ts";
import { platformOwned } from "./ownership.ts";
import type { BindingSchema } from "./schemas.ts";

type Bind = CoreHandlers["Core.Deployments.Bind"];

/** What an administrator chose for a deployment. */
export async function bindingViews(
  queries: Queries,
  deployment: string,
): Promise<Static<typeof BindingSchema>[]> {
  return [...(await chosenBindings(queries, deployment))].map(([api, provider]) => ({ api, provider }));
}

/**
 * Chooses the provider of a used API, or withdraws the choice. Running connections of the deployment take it up by a
 * refresh, which the route notice asks for; what the old provider has in hand is answered.
 */
export async function bind({ plane, actor }: CoreDeps, input: Parameters<Bind>[0]): ReturnType<Bind> {
  const { config, storage, revoker, outbox } = plane;
  const { queries } = storage;
  const { api } = input;
  const unknown = (id: string) => err(new NotKnown({ data: { kind: "deployment", id } }));
  const refused = (deployment: string, problem: "not_used" | "not_provided") =>
    err(new BindingRefused({ data: { api, deployment, problem } }));
  const row = await findDeploymentNamed(queries, input.id);
  if (row === undefined) return unknown(input.id);
  if (isPlatformOwned(row.participantId)) return platformOwned(row.participantId);
  if (!(await contractOf(plane, row))?.uses.some((use) => use.api === api))
    return refused(row.name, "not_used");
  const provider =
    input.provider === undefined ? undefined : await findDeploymentNamed(queries, input.provider);
  if (input.provider !== undefined) {
    if (provider === undefined) return unknown(input.provider);
    const provided = (await contractOf(plane, provider))?.implements.some(({ id }) => id === api);
    if (provided !== true) return refused(provider.name, "not_provided");
  }
  const audit = revoker.audit(actor.name, "deployment.bind", row.id, { api, provider: provider?.id ?? "" });
  await storage.mutate(audit, async (tx) => {
    const now = config.clock.now();
    if (provider === undefined) await forgetBinding(tx, row.id, api);
    else await chooseBinding(tx, { deploymentId: row.id, api, providerId: provider.id, now });
    await outbox.addRoute(tx, row.id);
  });
  await outbox.flush();
  return ok({ bindings: await bindingViews(queries, row.id) });
}

function contractOf({ catalog, storage }: CoreDeps["plane"], row: DeploymentRow) {
  return catalog.artifact(storage.queries, row.participantId, row.participantDigest);
}
