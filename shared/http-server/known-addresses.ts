import type { FastifyContextConfig, FastifyInstance } from 'fastify';

declare module 'fastify' {
  interface FastifyInstance {
    knownAddresses: KnownAddresses;
  }
}

const METHODS: readonly string[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

interface KnownRoute {
  methods: readonly string[];
  config: FastifyContextConfig;
}

interface KnownAddress {
  pattern: RegExp;
  routes: KnownRoute[];
}

/** The addresses of an app, to tell one that takes other methods from one that has nothing. Fastify looks its routes up by their templates alone. */
class KnownAddresses {
  readonly #byTemplate = new Map<string, KnownAddress>();

  add(template: string, route: KnownRoute): void {
    const known = this.#byTemplate.get(template) ?? { pattern: patternOf(template), routes: [] };
    this.#byTemplate.set(template, known);
    known.routes.push(route);
  }

  /** @param url with its query, or without */
  methodsAt(url: string): string[] {
    const taken = new Set(this.#routesAt(url).flatMap(({ methods }) => methods));
    return METHODS.filter((method) => taken.has(method));
  }

  configsAt(url: string): FastifyContextConfig[] {
    return this.#routesAt(url).map(({ config }) => config);
  }

  #routesAt(url: string): KnownRoute[] {
    const path = decoded(url.split('?', 1)[0] ?? '');
    return [...this.#byTemplate.values()].flatMap(({ pattern, routes }) => (pattern.test(path) ? routes : []));
  }
}

/** Of the routes that are added from now on. */
export function knowAddresses(app: FastifyInstance): void {
  const addresses = new KnownAddresses();
  app.decorate('knownAddresses', addresses);
  app.addHook('onRoute', ({ method, url, config = {} }) => addresses.add(url, { methods: [method].flat(), config }));
}

function patternOf(template: string): RegExp {
  const pieces = template.split(/(:\w+|\*)/);
  const pattern = pieces.map((piece) => (piece === '*' ? '.*' : piece.startsWith(':') ? '[^/]+' : piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')));
  return new RegExp(`^${pattern.join('')}$`);
}

/** As the router reads it: escapes of `/` and other delimiters remain. */
function decoded(path: string): string {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}
