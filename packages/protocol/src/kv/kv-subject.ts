import { requireToken } from "../subjects/token.ts";

/** The stream behind a bucket. */
export function kvStreamName(bucket: string): string {
  return `KV_${requireToken(bucket, "bucket")}`;
}

/** What the subject of every key of a bucket starts with, without a final dot. */
export function kvPrefix(bucket: string): string {
  return `$KV.${requireToken(bucket, "bucket")}`;
}

/** Where a bucket republishes what is stored in it, without a final dot: how watches hear of changes. */
export function kvWatchPrefix(bucket: string): string {
  return `kvw.v1.${requireToken(bucket, "bucket")}`;
}
