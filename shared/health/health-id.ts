import { createHash } from 'node:crypto';
import type { EndpointConfig } from '../config/router-config.ts';

const ids = new WeakMap<EndpointConfig, string>();

/** The same in all workers and after a reload, and short: what fails is the upstream's model at its provider, under whatever name the router has it. */
export function healthIdOf(endpoint: EndpointConfig): string {
  let id = ids.get(endpoint);
  if (id === undefined) {
    id = createHash('sha256')
      .update(JSON.stringify([endpoint.provider, endpoint.upstream_model]))
      .digest('base64url')
      .slice(0, 16);
    ids.set(endpoint, id);
  }
  return id;
}
