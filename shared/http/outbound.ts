import type { Agent as NodeAgent } from 'node:http';
import { Agent, type Dispatcher } from 'undici';
import type { Environment } from '../config/secret-ref.ts';
import { type HttpClient, openHttpClient } from './client.ts';
import { type ConnectionLimits, openConnections } from './connections.ts';
import { type GuardedGetter, openGuardedGetter } from './guarded-get.ts';
import { type GuardedPoster, type GuardedPosterOptions, openGuardedPoster } from './guarded-post.ts';
import type { GuardedRequestsOptions } from './guarded-requests.ts';
import { openNodeAgent } from './node-agent.ts';
import { readProxies } from './proxies.ts';

/**
 * Every HTTP connection to another system is opened here. URLs of the configuration (providers, tool servers, collectors) go through the
 * proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name for them. No redirect is followed: its target was neither configured nor checked.
 */
export interface Outbound {
  /** To one server, without a promise or a stream per request. @param options.baseUrl origin, with a path and query common to all requests */
  openClient(options: ConnectionLimits & { baseUrl: string }): HttpClient;
  /** To any servers of the configuration, for undici's `fetch` with `redirect: 'manual'`. The limits are per server. */
  openDispatcher(limits: ConnectionLimits): Dispatcher;
  /** To one server, for a library that uses `node:http`. */
  openAgent(url: string, limits: ConnectionLimits): NodeAgent;
  /** To URLs from callers. Uses no proxy: it would resolve the checked name again. */
  openPoster(options: GuardedPosterOptions): GuardedPoster;
  /** For files at URLs from callers, likewise. */
  openGetter(options: GuardedRequestsOptions): GuardedGetter;
}

/** @throws `config.invalid` naming a proxy variable */
export function openOutbound(environment: Environment): Outbound {
  const proxyOf = readProxies(environment);
  return {
    openClient({ baseUrl, ...limits }) {
      const base = new URL(baseUrl);
      return openHttpClient(base, limits, proxyOf(base));
    },
    openDispatcher: (limits) =>
      new Agent({
        factory: (origin) => {
          const url = new URL(origin);
          return openConnections(url, limits, proxyOf(url));
        },
      }),
    openAgent(address, limits) {
      const url = new URL(address);
      return openNodeAgent(url, limits, proxyOf(url));
    },
    openPoster: openGuardedPoster,
    openGetter: openGuardedGetter,
  };
}
