import {
  kvPrefix,
  kvStreamName,
  kvWatchPrefix,
  storeChunkPrefix,
  storeMetaPrefix,
  storeStreamName,
  storeWatchPrefix,
} from "@trellis/protocol";
import { jobsPermissions } from "@trellis/protocol/jobs";
import type { Permissions, TransportPolicy } from "./policy.ts";

/**
 * What the resources of a deployment need on the broker: reading by direct gets, watching what the stream republishes,
 * pulling from a consumer that is there. Nothing here can make, change or look through a stream of somebody else, and
 * no consumer can be made at all.
 */
export function resourcePermissions(
  policy: Pick<TransportPolicy, "kv" | "store" | "consumers" | "jobs">,
): Permissions {
  const pub: string[] = [];
  const sub: string[] = [];
  for (const bucket of policy.kv) {
    pub.push(`${kvPrefix(bucket)}.>`, ...directGets(kvStreamName(bucket)));
    sub.push(`${kvWatchPrefix(bucket)}.>`);
  }
  for (const name of policy.store) {
    const stream = storeStreamName(name);
    pub.push(`${storeChunkPrefix(name)}.>`, `${storeMetaPrefix(name)}.>`, ...directGets(stream));
    // Chunks that no object has are purged by subject; the list of subjects is in the stream's info.
    pub.push(`$JS.API.STREAM.PURGE.${stream}`, `$JS.API.STREAM.INFO.${stream}`);
    sub.push(`${storeWatchPrefix(name)}.>`);
  }
  for (const { stream, name, deadLetters } of policy.consumers) {
    pub.push(
      `$JS.API.CONSUMER.MSG.NEXT.${stream}.${name}`,
      `$JS.API.CONSUMER.INFO.${stream}.${name}`,
      // Acks, in the form of today and in that of servers to come: account hash and domain before the stream.
      `$JS.ACK.${stream}.${name}.>`,
      `$JS.ACK.*.*.${stream}.${name}.>`,
      `${deadLetters}.*`,
    );
  }
  if (policy.jobs !== null) {
    const { publish, subscribe } = jobsPermissions(policy.jobs);
    pub.push(...publish);
    sub.push(...subscribe);
  }
  return { pub, sub };
}

function directGets(stream: string): string[] {
  return [`$JS.API.DIRECT.GET.${stream}`, `$JS.API.DIRECT.GET.${stream}.>`];
}
