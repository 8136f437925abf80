/** Participants that `trellis call` installs to be allowed a call. */
export const callerPrefix = "cli-call.";

/** True for what this command installs and connects as: lists leave it out, unless all is asked for. */
export function isOfCommand(participant: string): boolean {
  return participant.startsWith(callerPrefix) || participant === "trellis.cli";
}
