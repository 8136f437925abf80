import type { ConnectedService } from "@trellis/runtime/service";
import type { CoreHandlers } from "../core/api.ts";
import { coreHandlers } from "../core/handlers.ts";
import type { Plane } from "../plane.ts";
import type { Calling } from "./calling.ts";
import type { platformParticipant } from "./participants.ts";

type PlatformService = ConnectedService<typeof platformParticipant>;

/** Serves the core API: each action is a plain function of its input, on behalf of the caller. */
export function handleCore(service: PlatformService, plane: Plane, owner: string | null): void {
  const on = ({ caller }: Calling): CoreHandlers =>
    coreHandlers(plane, { name: `${caller.participant.id}/${caller.instance}`, owner });
  const { core } = service.handle.rpc;
  core.participantsList(({ input, context }) => on(context)["Core.Participants.List"](input));
  core.participantsGet(({ input, context }) => on(context)["Core.Participants.Get"](input));
  core.participantsInstall(({ input, context }) => on(context)["Core.Participants.Install"](input));
  core.deploymentsList(({ input, context }) => on(context)["Core.Deployments.List"](input));
  core.deploymentsGet(({ input, context }) => on(context)["Core.Deployments.Get"](input));
  core.deploymentsCreate(({ input, context }) => on(context)["Core.Deployments.Create"](input));
  core.deploymentsUpdate(({ input, context }) => on(context)["Core.Deployments.Update"](input));
  core.deploymentsBind(({ input, context }) => on(context)["Core.Deployments.Bind"](input));
  core.deploymentsDisable(({ input, context }) => on(context)["Core.Deployments.Disable"](input));
  core.deploymentsEnable(({ input, context }) => on(context)["Core.Deployments.Enable"](input));
  core.instancesList(({ input, context }) => on(context)["Core.Instances.List"](input));
  core.instancesGet(({ input, context }) => on(context)["Core.Instances.Get"](input));
  core.instancesProvision(({ input, context }) => on(context)["Core.Instances.Provision"](input));
  core.instancesDisable(({ input, context }) => on(context)["Core.Instances.Disable"](input));
  core.instancesEnable(({ input, context }) => on(context)["Core.Instances.Enable"](input));
  core.apisList(({ input, context }) => on(context)["Core.Apis.List"](input));
  core.apisGet(({ input, context }) => on(context)["Core.Apis.Get"](input));
  core.grantsGet(({ input, context }) => on(context)["Core.Grants.Get"](input));
  core.grantsSet(({ input, context }) => on(context)["Core.Grants.Set"](input));
  core.connectionsList(({ input, context }) => on(context)["Core.Connections.List"](input));
  core.connectionsGet(({ input, context }) => on(context)["Core.Connections.Get"](input));
  core.connectionsKick(({ input, context }) => on(context)["Core.Connections.Kick"](input));
}
