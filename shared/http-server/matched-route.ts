import type { FastifyRequest } from 'fastify';

declare module 'fastify' {
  interface FastifyRequest {
    /** Null until it is asked for (`matchedRoute`). */
    route: MatchedRoute | null;
  }
}

/** What hooks need of the route that serves a request. */
export interface MatchedRoute {
  /** Its template; undefined: none matches. */
  readonly url: string | undefined;
  readonly isPublic: boolean;
  /** By method, as work is marked. */
  readonly kinds: Map<string, string>;
}

/** By the configuration of the route. */
const known = new WeakMap<object, MatchedRoute>();

/** Looked up once per request: `routeOptions` makes an object of twelve fields each time. */
export function matchedRoute(request: FastifyRequest): MatchedRoute {
  request.route ??= routeOf(request);
  return request.route;
}

function routeOf({ routeOptions: { url, config } }: FastifyRequest): MatchedRoute {
  let route = known.get(config);
  if (route === undefined) {
    route = { url, isPublic: config.isPublic === true, kinds: new Map() };
    known.set(config, route);
  }
  return route;
}

/** The kind of a request's work: method and template. */
export function workKindOf(request: FastifyRequest): string {
  const { url, kinds } = matchedRoute(request);
  const { method } = request;
  let kind = kinds.get(method);
  if (kind === undefined) {
    kind = url === undefined ? 'unknown route' : `${method} ${url}`;
    kinds.set(method, kind);
  }
  return kind;
}
