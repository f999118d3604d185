import { z } from 'zod';
import { localTrace, traceList } from '#shared/contracts/local-trace.ts';
import { activityAnswer, callingKeyAnswer, generationAnswer, keyAnswer } from '#shared/contracts/router/account-answers.ts';
import {
  chatCompletionAnswer,
  embeddingsAnswer,
  endpointListAnswer,
  modelEndpointsAnswer,
  modelListAnswer,
  oneModelAnswer,
  providersAnswer,
  responseAnswer,
} from '#shared/contracts/router/answers.ts';
import type { PublishedBody, PublishedOperation } from '#shared/http-server/published-operation.ts';

/** `call`: a key that may call models. `key`: any key. `management`: a management key. `platform`: the platform's pair. `traces`: the pair, or any key. */
export type Access = 'call' | 'key' | 'management' | 'platform' | 'traces' | 'none';
export type Operation = PublishedOperation<Access>;

const json = (schema: z.ZodType): PublishedBody => ({ json: schema });
const data = (schema: z.ZodType): PublishedBody => json(z.object({ data: schema }));
const page: PublishedBody = { media: 'text/html' };
const invalid = [400, 408, 413, 415] as const;
/** Of a call: credit, moderation, rate, and what becomes of it at providers. */
const called = [...invalid, 402, 403, 404, 429, 502, 504] as const;

const modelCall = (summary: string, schema: z.ZodType): Operation => ({
  summary,
  access: 'call',
  // A repeated request with Last-Event-ID of a stream that has ended.
  answers: { 200: { json: schema, or: 'text/event-stream' }, 204: null },
  refusals: called,
});

const health = z.object({ status: z.string() });
const published = z.object({ version: z.int(), etag: z.string(), published_at: z.iso.datetime() });
const agent = z.object({
  id: z.string(),
  name: z.string(),
  version: z.string(),
  url: z.string(),
  is_live: z.boolean(),
  registered_at: z.iso.datetime(),
  renewed_at: z.iso.datetime(),
});
const pageOf = (item: z.ZodType) => z.object({ items: z.array(item), has_more: z.boolean(), next_cursor: z.string().nullable() });
const publishedDocument = published.extend({ kind: z.string(), id: z.string() });

/** Every operation of the router's API by method and path; those below `/api/v1` are at `/v1`, too. What the published description says beside the schemas of its requests. */
export const operations: Readonly<Record<string, Operation>> = {
  'GET /health/live': { summary: 'Whether the process runs', access: 'none', answers: { 200: json(health) }, refusals: [] },
  'GET /health/ready': { summary: 'Whether requests can be served', access: 'none', answers: { 200: json(health), 503: json(health) }, refusals: [] },
  'GET /': {
    summary: 'Which API this is; a browser is led to /console',
    access: 'none',
    answers: { 200: json(z.object({ name: z.string(), version: z.string(), docs: z.string(), openapi: z.string() })), 302: null },
    refusals: [],
  },
  'GET /console': { summary: 'The page for operators of the router', access: 'none', answers: { 200: page }, refusals: [] },
  'GET /pages/{file}': { summary: 'A file of the pages', access: 'none', answers: { 200: { media: 'text/javascript' } }, refusals: [404] },
  'GET /openapi.json': { summary: 'This description', access: 'key', answers: { 200: { media: 'application/json' }, 304: null }, refusals: [] },

  'POST /api/v1/chat/completions': modelCall('Completes a chat; stream=true: as events', chatCompletionAnswer),
  'POST /api/v1/responses': modelCall('The same in the second dialect: items in place of messages', responseAnswer),
  'POST /api/alpha/responses': modelCall('The same as POST /api/v1/responses', responseAnswer),
  'POST /api/v1/embeddings': { ...modelCall('Vectors of texts', embeddingsAnswer), answers: { 200: json(embeddingsAnswer) } },
  'GET /api/v1/generations/{generation_id}/stream': {
    summary: 'The stream of a call that runs, or has ended lately, from Last-Event-ID on',
    access: 'call',
    answers: { 200: { media: 'text/event-stream' }, 204: null },
    refusals: [400, 404, 429, 502, 504],
  },

  'GET /api/v1/models': { summary: 'Models, filtered and sorted', access: 'key', answers: { 200: json(modelListAnswer) }, refusals: [400] },
  'GET /api/v1/models/user': { summary: 'Models that the calling key may use', access: 'key', answers: { 200: json(modelListAnswer) }, refusals: [400] },
  'GET /api/v1/models/count': { summary: 'How many models there are', access: 'key', answers: { 200: data(z.object({ count: z.int() })) }, refusals: [400] },
  'GET /api/v1/models/{path}': {
    summary: 'A model by its id, which may have slashes; behind it /endpoints: its endpoints with their health',
    access: 'key',
    answers: { 200: json(z.union([oneModelAnswer, modelEndpointsAnswer])) },
    refusals: [404],
  },
  'GET /api/v1/model/{path}': { summary: 'A model by its id', access: 'key', answers: { 200: json(oneModelAnswer) }, refusals: [404] },
  'GET /api/v1/embeddings/models': { summary: 'Models of vectors', access: 'key', answers: { 200: json(modelListAnswer) }, refusals: [400] },
  'GET /api/v1/endpoints/zdr': { summary: 'Endpoints that retain nothing', access: 'key', answers: { 200: json(endpointListAnswer) }, refusals: [] },
  'GET /api/v1/providers': { summary: 'Providers', access: 'key', answers: { 200: json(providersAnswer) }, refusals: [] },

  'GET /api/v1/key': { summary: 'The calling key', access: 'key', answers: { 200: data(callingKeyAnswer) }, refusals: [] },
  'GET /api/v1/credits': {
    summary: 'What all keys have spent, and may spend',
    access: 'management',
    answers: { 200: data(z.object({ total_credits: z.number(), total_usage: z.number() })) },
    refusals: [],
  },
  'GET /api/v1/keys': { summary: 'Keys', access: 'management', answers: { 200: data(z.array(keyAnswer)) }, refusals: [400] },
  'POST /api/v1/keys': {
    summary: 'Makes a key, whose secret is in this answer alone',
    access: 'management',
    answers: { 201: json(z.object({ data: keyAnswer, key: z.string() })) },
    refusals: invalid,
  },
  'GET /api/v1/keys/{hash}': { summary: 'A key', access: 'management', answers: { 200: data(keyAnswer) }, refusals: [404] },
  'PATCH /api/v1/keys/{hash}': { summary: 'Changes a key', access: 'management', answers: { 200: data(keyAnswer) }, refusals: [...invalid, 404, 409] },
  'DELETE /api/v1/keys/{hash}': {
    summary: 'Deletes a key',
    access: 'management',
    answers: { 200: json(z.object({ deleted: z.literal(true) })) },
    refusals: [...invalid, 404, 409],
  },
  'POST /api/v1/keys/{hash}/exposed': {
    summary: 'Notes that a key is exposed, disables it unless asked not to, and writes to its owner',
    access: 'management',
    answers: { 200: json(z.object({ data: keyAnswer, mail_queued: z.boolean() })) },
    refusals: [...invalid, 404, 409],
  },
  'GET /api/v1/generation': {
    summary: 'The record of a call that has ended, and why it went where it went',
    access: 'key',
    answers: { 200: data(generationAnswer) },
    refusals: [400, 404],
  },
  'GET /api/v1/activity': {
    summary: 'What was used in the last 30 days, by day, model and provider',
    access: 'key',
    answers: { 200: data(z.array(activityAnswer)) },
    refusals: [400, 403, 404],
  },

  'GET /auth': { summary: 'A page to approve a key for an app', access: 'none', answers: { 200: page }, refusals: [400] },
  'POST /auth': { summary: 'Approves it', access: 'none', answers: { 200: page, 303: null, 403: page }, refusals: [...invalid, 429] },
  'POST /api/v1/auth/keys/code': {
    summary: 'Approves a key for an app without the page',
    access: 'management',
    answers: { 200: data(z.object({ id: z.string(), app_id: z.int(), created_at: z.iso.datetime() })) },
    refusals: invalid,
  },
  'POST /api/v1/auth/keys': {
    summary: 'Exchanges the code of an approval for the key',
    access: 'none',
    answers: { 200: json(z.object({ key: z.string(), user_id: z.null() })) },
    refusals: [...invalid, 403, 429],
  },

  'POST /api/v1/otel/v1/traces': {
    summary: 'Takes traces (OTLP over HTTP) for the collector',
    access: 'traces',
    answers: { 200: { json: z.looseObject({}), or: 'application/x-protobuf' } },
    refusals: invalid,
  },
  'GET /api/v1/traces': {
    summary: 'The last traces that this process keeps in memory, newest first; 404: it keeps none (TRACES_LOCAL)',
    access: 'management',
    answers: { 200: json(traceList) },
    refusals: [400, 404],
  },
  'GET /api/v1/traces/{trace_id}': { summary: 'One of them with its spans', access: 'management', answers: { 200: json(localTrace) }, refusals: [404] },

  'GET /api/v1/platform/agents': { summary: 'Agents', access: 'platform', answers: { 200: json(pageOf(agent)) }, refusals: [400] },
  'GET /api/v1/platform/agents/{id}': { summary: 'An agent', access: 'platform', answers: { 200: json(agent) }, refusals: [404] },
  'PUT /api/v1/platform/agents/{id}': {
    summary: 'Registers an agent, or renews its registration',
    access: 'platform',
    answers: { 200: json(agent), 201: json(agent) },
    refusals: [...invalid, 409],
  },
  'GET /api/v1/platform/{kind}': {
    summary: 'Documents of a kind, with the newest version of each',
    access: 'platform',
    answers: { 200: json(pageOf(z.object({ id: z.string(), versions: z.int(), newest: published }))) },
    refusals: [400, 404],
  },
  'GET /api/v1/platform/{kind}/{id}/versions': {
    summary: 'Versions of a document, newest first',
    access: 'platform',
    answers: { 200: json(pageOf(published)) },
    refusals: [400, 404],
  },
  'GET /api/v1/platform/{kind}/{id}/versions/{version}': {
    summary: 'A document as it was published',
    access: 'platform',
    answers: { 200: json(z.looseObject({})), 304: null },
    refusals: [404],
  },
  'PUT /api/v1/platform/{kind}/{id}/versions/{version}': {
    summary: 'Publishes a version of a document, once; 200: the same text again',
    access: 'platform',
    answers: { 200: json(publishedDocument), 201: json(publishedDocument) },
    refusals: [...invalid, 404, 409],
  },
};

/** Each may be refused while the gateway is starting, draining or overloaded; most without their key, and some with a key of another kind. */
export function refusalsOf(_method: string, { access, refusals }: Operation): readonly number[] {
  const ofKeys = access === 'none' ? [] : access === 'call' || access === 'management' ? [401, 403] : [401];
  return [...new Set([...refusals, ...ofKeys, 503])];
}
