/** The HTTP paths of the control plane that a connecting process uses. */
export const BOOTSTRAP_PATHS = {
  service: "/bootstrap/service",
  client: "/bootstrap/client",
  refresh: "/auth/context/refresh",
  wellKnown: "/.well-known/trellis",
} as const;
