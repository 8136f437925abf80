import type { BootstrapAnswer } from "@trellis/protocol";
import { err, type Result } from "@trellis/result";
import type { Log } from "../config/log.ts";
import { type AdmissionDeps, admit } from "./admission.ts";
import { type AuthenticateDeps, authenticate, type BootstrapCall } from "./authenticate.ts";
import { type IssueDeps, issue } from "./issue.ts";
import { type Refusal, refusal } from "./refusal.ts";

export interface BootstrapDeps {
  authenticate: AuthenticateDeps;
  admission: AdmissionDeps;
  issue: IssueDeps;
  log: Log;
}

/**
 * Bootstraps a process, or refreshes one: authenticate, admit, issue. Services, clients and refreshes take the
 * same way; they differ in the purpose that their proofs name.
 */
export async function bootstrap(
  deps: BootstrapDeps,
  call: BootstrapCall,
): Promise<Result<BootstrapAnswer, Refusal>> {
  try {
    const authenticated = authenticate(deps.authenticate, call, deps.issue.clock.now());
    if (authenticated.isErr()) return err(authenticated.error);
    const admitted = await admit(deps.admission, authenticated.value);
    if (admitted.isErr()) return err(admitted.error);
    return await issue(deps.issue, authenticated.value.request, admitted.value);
  } catch (error) {
    deps.log.error({ code: "trellis.bootstrap.failed", error }, "A bootstrap failed.");
    return err(refusal("trellis.bootstrap.unavailable"));
  }
}
