/** Who calls, as it will stand in the audit: what the platform signed, not what the caller says. */
export interface Calling {
  readonly caller: { readonly participant: { readonly id: string }; readonly instance: string };
}
