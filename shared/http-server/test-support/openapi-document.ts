import swagger from '@fastify/swagger';
import { type FastifyInstance, fastify, type RouteOptions } from 'fastify';
import { createJsonSchemaTransform, createJsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { PublishedOperation } from '../published-operation.ts';

type Route = Pick<RouteOptions, 'method' | 'url' | 'schema'>;

/** An API as its server's table says it. */
export interface PublishedApi<Access extends string> {
  title: string;
  version: string;
  /** By method and path: `GET /runs/{run_id}`. */
  operations: Readonly<Record<string, PublishedOperation<Access>>>;
  /** All statuses of the error body that an operation may answer with. */
  refusalsOf(method: string, operation: PublishedOperation<Access>): readonly number[];
  errorAnswer: z.ZodType;
  /** Answers that several operations have stand in the description once. */
  shapes: Readonly<Record<string, z.ZodType>>;
  securitySchemes: Readonly<Record<string, object>>;
  /** Of each access: the names of its schemes, any of which will do; empty: none is needed. */
  security: Readonly<Record<Access, readonly string[]>>;
  /** Stands in the description once, and with operations of another access. */
  usualAccess: Access;
}

/** Routes as they are registered, without those of HEAD. Call before the app is ready. @param pathOf null: not published */
export function routesOf(app: FastifyInstance, pathOf: (url: string) => string | null = templateOf): Map<string, Route> {
  const routes = new Map<string, Route>();
  app.addHook('onRoute', ({ method, url, schema }) => {
    const path = pathOf(url);
    if (method === 'HEAD' || path === null) return;
    routes.set(`${String(method)} ${path}`, { method, url: path.replace(/\{(\w+)\}/g, ':$1'), ...(schema && { schema }) });
  });
  return routes;
}

/** `/runs/:run_id` as `/runs/{run_id}`. Null: the route only refuses. */
export function templateOf(url: string): string | null {
  return url.includes('*') ? null : url.replace(/:(\w+)/g, '{$1}');
}

/** The OpenAPI description (3.1) of routes: their own schemas of requests, and of the table what they answer. */
export async function openApiDocument<Access extends string>(routes: ReadonlyMap<string, Route>, api: PublishedApi<Access>): Promise<object> {
  const named = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(api.shapes)) named.add(schema, { id });
  const transforming = { schemaRegistry: named, zodToJsonConfig: { unrepresentable: 'any', override: plainTimes } } as const;
  const app = fastify();
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => JSON.stringify);
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: api.title, version: api.version },
      components: { securitySchemes: { ...api.securitySchemes } as never },
      security: securityOf(api, api.usualAccess),
    },
    transform: createJsonSchemaTransform(transforming),
    transformObject: createJsonSchemaTransformObject(transforming),
  });
  for (const [name, route] of [...routes].sort(([one], [other]) => (one < other ? -1 : 1))) {
    const operation = api.operations[name];
    if (operation === undefined) throw new Error(`the table of operations has no ${name}`);
    app.route({ ...route, schema: { ...route.schema, ...described(String(route.method), operation, api) }, handler: async () => null });
  }
  await app.ready();
  const document = app.swagger() as { components?: { schemas?: Record<string, unknown> } };
  // The library makes each named shape twice; none of these is in a request.
  const { schemas = {} } = document.components ?? {};
  for (const id of Object.keys(schemas)) if (id.endsWith('Input')) delete schemas[id];
  return document;
}

function described<Access extends string>(method: string, operation: PublishedOperation<Access>, api: PublishedApi<Access>) {
  const { summary, access, headers, answers } = operation;
  const errors = api
    .refusalsOf(method, operation)
    .filter((status) => !(status in answers))
    .map((status) => [status, jsonAnswer(api.errorAnswer)] as const);
  const bodies = Object.entries(answers).map(([status, body]) => {
    if (body === null) return [status, z.null().describe('no body')] as const;
    return [status, 'json' in body ? jsonAnswer(body.json, body.or) : { description: body.media, content: { [body.media]: { schema: z.string() } } }] as const;
  });
  const secured = access !== api.usualAccess && { security: securityOf(api, access) };
  return { summary, ...secured, ...(headers !== undefined && { headers }), response: Object.fromEntries([...bodies, ...errors]) };
}

function securityOf<Access extends string>({ security }: PublishedApi<Access>, access: Access): Record<string, string[]>[] {
  return security[access].map((scheme) => ({ [scheme]: [] }));
}

/** @param other the media type that the body may have, too */
function jsonAnswer(schema: z.ZodType, other?: string) {
  const content = { 'application/json': { schema }, ...(other !== undefined && { [other]: { schema: z.string() } }) };
  return { description: 'a JSON body', content };
}

/** `format` says it; the pattern is longer than the rest of a field. */
function plainTimes({ jsonSchema }: { jsonSchema: { format?: string; pattern?: string } }): void {
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern;
}
