import swagger from '@fastify/swagger';
import { type FastifyInstance, fastify, type RouteOptions } from 'fastify';
import { createJsonSchemaTransform, createJsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { z } from 'zod';
import {
  customerAnswer,
  errorAnswer,
  journeyAnswer,
  runAnswer,
  runEnvelopeAnswer,
  sessionAnswer,
  storedEvent,
  variableValueAnswer,
} from '#shared/contracts/agent/answers.ts';
import { type Operation, operations, refusalsOf } from '../openapi/operations.ts';

/** The contract's runtime version. */
export const API_VERSION = '0.9.0';

/** Shapes that several operations answer with stand in the description once. */
const named = z.registry<{ id: string }>();
const shapes = {
  Error: errorAnswer,
  Session: sessionAnswer,
  Customer: customerAnswer,
  Event: storedEvent,
  Run: runAnswer,
  RunEnvelope: runEnvelopeAnswer,
  Value: variableValueAnswer,
  Journey: journeyAnswer,
};
for (const [id, schema] of Object.entries(shapes)) named.add(schema, { id });
const transforming = { schemaRegistry: named, zodToJsonConfig: { unrepresentable: 'any', override: plainTimes } } as const;

type Route = Pick<RouteOptions, 'method' | 'url' | 'schema'>;

/** Routes as they are registered, without those of HEAD and those that only refuse. Call before the app is ready. */
export function routesOf(app: FastifyInstance): Map<string, Route> {
  const routes = new Map<string, Route>();
  app.addHook('onRoute', ({ method, url, schema }) => {
    if (method === 'HEAD' || url.includes('*')) return;
    routes.set(`${String(method)} ${templateOf(url)}`, { method, url, ...(schema && { schema }) });
  });
  return routes;
}

/** `/runs/:run_id` as `/runs/{run_id}`. */
export function templateOf(url: string): string {
  return url.replace(/:(\w+)/g, '{$1}');
}

/** The OpenAPI description (3.1) of routes: their own schemas of requests, and of the table what they answer. */
export async function openApiDocument(routes: ReadonlyMap<string, Route>): Promise<object> {
  const app = fastify();
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => JSON.stringify);
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Switchyard agent server', version: API_VERSION },
      components: {
        securitySchemes: { key: { type: 'http', scheme: 'bearer' }, login: { type: 'apiKey', in: 'cookie', name: 'agent_auth' } },
      },
      security: [{ key: [] }, { login: [] }],
    },
    transform: createJsonSchemaTransform(transforming),
    transformObject: createJsonSchemaTransformObject(transforming),
  });
  for (const [name, route] of [...routes].sort(([one], [other]) => (one < other ? -1 : 1))) {
    const operation = operations[name];
    if (operation === undefined) throw new Error(`the table of operations has no ${name}`);
    app.route({ ...route, schema: { ...route.schema, ...described(String(route.method), operation) }, handler: async () => null });
  }
  await app.ready();
  const document = app.swagger() as { components?: { schemas?: Record<string, unknown> } };
  // The library makes each named shape twice; none of these is in a request.
  const { schemas = {} } = document.components ?? {};
  for (const id of Object.keys(schemas)) if (id.endsWith('Input')) delete schemas[id];
  return document;
}

function described(method: string, operation: Operation) {
  const { summary, access, answers } = operation;
  const errors = refusalsOf(method, operation)
    .filter((status) => !(status in answers))
    .map((status) => [status, jsonAnswer(errorAnswer)] as const);
  const bodies = Object.entries(answers).map(([status, body]) => {
    if (body === null) return [status, z.null().describe('no body')] as const;
    return [status, 'json' in body ? jsonAnswer(body.json, body.or) : { description: body.media, content: { [body.media]: { schema: z.string() } } }] as const;
  });
  return { summary, ...(access === 'key' ? {} : { security: [] }), response: Object.fromEntries([...bodies, ...errors]) };
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
