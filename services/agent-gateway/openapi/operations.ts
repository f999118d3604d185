import { z } from 'zod';
import {
  customerAnswer,
  errorAnswer,
  eventPage,
  eventWebhookAnswer,
  healthAnswer,
  journeyAnswer,
  journeyGraphAnswer,
  pageOf,
  readinessAnswer,
  readyAnswer,
  runAnswer,
  runEnvelopeAnswer,
  runStepAnswer,
  sessionAnswer,
  sessionPage,
  storedEvent,
  toolEventAnswer,
  variableValueAnswer,
} from '#shared/contracts/agent/answers.ts';
import { deadLetterAnswer, deliveryAnswer, eventWebhookStateAnswer, replayAnswer, webhookDeliveryAnswer } from '#shared/contracts/agent/deliveries.ts';
import { turnRecord, turnSummary } from '#shared/contracts/agent/turn-record.ts';
import { localTrace, traceList } from '#shared/contracts/local-trace.ts';
import type { PublishedBody, PublishedOperation } from '#shared/http-server/published-operation.ts';
import { idempotencyHeader } from '../routes/idempotency-key.ts';

/** `key`: the bearer or the cookie of a login. `signature`: a webhook's own. `none`: public. */
export type Access = 'key' | 'signature' | 'none';
export type Operation = PublishedOperation<Access>;

const json = (schema: z.ZodType): PublishedBody => ({ json: schema });
const page: PublishedBody = { media: 'text/html' };
const invalid = [400, 408, 413, 415] as const;

const triggerConflict = errorAnswer.extend(runEnvelopeAnswer.shape);
const fanOutAnswer = z.object({
  webhook: z.string(),
  matched: z.array(z.string()),
  runs: z.array(runEnvelopeAnswer.pick({ routine_id: true, run_id: true, status: true })),
});

/** Every operation of the agent's API by method and path: what the published description says beside the schemas of its requests. */
export const operations: Readonly<Record<string, Operation>> = {
  'GET /health/live': { summary: 'Whether the process runs', access: 'none', answers: { 200: json(healthAnswer) }, refusals: [] },
  'GET /health/ready': {
    summary: 'Whether requests can be served',
    access: 'none',
    answers: { 200: json(readyAnswer), 503: json(readinessAnswer) },
    refusals: [],
  },
  'GET /health': { summary: 'As /health/ready', access: 'none', answers: { 200: json(readyAnswer), 503: json(readinessAnswer) }, refusals: [] },
  'GET /auth/login': { summary: 'A form for the key', access: 'none', answers: { 200: page }, refusals: [400, 403] },
  'POST /auth/login': {
    summary: 'Sets the cookie of a login; a form gets pages and redirects',
    access: 'none',
    answers: { 204: null, 303: null },
    refusals: [...invalid, 401, 403, 429, 503],
  },
  'POST /auth/logout': { summary: 'Clears the cookie', access: 'none', answers: { 204: null, 303: null }, refusals: [...invalid, 403] },
  'GET /auth/pages/{file}': { summary: 'A file of the form for the key', access: 'none', answers: { 200: { media: 'text/css' } }, refusals: [404] },
  'GET /': {
    summary: 'Which API this is; a browser is led to /chat',
    access: 'key',
    answers: { 200: json(z.object({ name: z.string(), version: z.string(), docs: z.string(), openapi: z.string() })), 302: null },
    refusals: [],
  },
  'GET /chat': {
    summary: 'The page for conversations with the agent; a browser without a login is sent to /auth/login',
    access: 'key',
    answers: { 200: page, 302: null },
    refusals: [],
  },
  'GET /console': {
    summary: 'The page for operators of the agent; a browser without a login is sent to /auth/login',
    access: 'key',
    answers: { 200: page, 302: null },
    refusals: [],
  },
  'GET /pages/{file}': { summary: 'A file of the pages', access: 'key', answers: { 200: { media: 'text/javascript' } }, refusals: [404] },
  'GET /openapi.json': { summary: 'This description', access: 'key', answers: { 200: { media: 'application/json' }, 304: null }, refusals: [] },
  'GET /docs': { summary: 'This description as a page', access: 'key', answers: { 200: page, 302: null }, refusals: [] },

  'GET /traces': {
    summary: 'The last traces that this process keeps in memory, newest first; 404: it keeps none (TRACES_LOCAL)',
    access: 'key',
    answers: { 200: json(traceList) },
    refusals: [400, 404],
  },
  'GET /traces/{trace_id}': { summary: 'One of them with its spans', access: 'key', answers: { 200: json(localTrace) }, refusals: [404] },

  'POST /sessions': {
    summary: 'Creates a session',
    access: 'key',
    headers: idempotencyHeader,
    answers: { 200: json(sessionAnswer), 201: json(sessionAnswer) },
    refusals: [...invalid, 409],
  },
  'GET /sessions': { summary: 'Sessions, of a customer or with a label', access: 'key', answers: { 200: json(sessionPage) }, refusals: [400] },
  'GET /sessions/{session_id}': { summary: 'A session', access: 'key', answers: { 200: json(sessionAnswer) }, refusals: [404] },
  'PATCH /sessions/{session_id}': {
    summary: 'Changes a session',
    access: 'key',
    headers: idempotencyHeader,
    answers: { 200: json(sessionAnswer) },
    refusals: [...invalid, 404],
  },
  'DELETE /sessions/{session_id}': {
    summary: 'Deletes a session with its events',
    access: 'key',
    headers: idempotencyHeader,
    answers: { 204: null },
    refusals: [404],
  },
  'GET /sessions/{session_id}/events': {
    summary: 'Events in the order of their offsets, by long-poll; with Accept: text/event-stream an endless stream',
    access: 'key',
    answers: { 200: json(eventPage) },
    refusals: [400, 404, 504],
  },
  'GET /sessions/{session_id}/events/{event_id}': { summary: 'One event', access: 'key', answers: { 200: json(storedEvent) }, refusals: [404] },
  'GET /sessions/{session_id}/turns': {
    summary: 'The turns of a session and what they have decided, newest first',
    access: 'key',
    answers: { 200: json(z.object({ items: z.array(turnSummary), has_more: z.boolean(), next_cursor: z.string().nullable() })) },
    refusals: [400, 404],
  },
  'GET /sessions/{session_id}/turns/{trace_id}': {
    summary: 'One turn, with the reasons for what it has decided and its model calls',
    access: 'key',
    answers: { 200: json(turnRecord) },
    refusals: [400, 404],
  },
  'PATCH /sessions/{session_id}/events/{event_id}': {
    summary: 'Changes the metadata of an event',
    access: 'key',
    headers: idempotencyHeader,
    answers: { 200: json(storedEvent) },
    refusals: [...invalid, 404],
  },
  'DELETE /sessions/{session_id}/events': {
    summary: 'Deletes the events from an offset on, which must be at the first event of a turn and split no other turn; force=true cancels a turn in progress',
    access: 'key',
    headers: idempotencyHeader,
    answers: { 204: null },
    refusals: [400, 404, 409],
  },
  'POST /sessions/{session_id}/events': {
    summary: 'Posts a message or an event of a front end; 202: it is durable and has no offset yet (503 with moderation)',
    access: 'key',
    headers: idempotencyHeader,
    answers: { 200: json(storedEvent), 201: json(storedEvent), 202: json(z.object({ command_id: z.string() })) },
    refusals: [...invalid, 404],
  },
  'POST /sessions/{session_id}/tool_events': {
    summary: 'Appends the result of a tool that another system called',
    access: 'key',
    headers: idempotencyHeader,
    answers: { 200: json(toolEventAnswer) },
    refusals: [...invalid, 404],
  },
  'GET /sessions/{session_id}/event_webhook': {
    summary: 'How far the events of a session are posted',
    access: 'key',
    answers: { 200: json(eventWebhookStateAnswer) },
    refusals: [404],
  },
  'PUT /sessions/{session_id}/event_webhook': {
    summary: 'Sets where the events of a session are posted',
    access: 'key',
    headers: idempotencyHeader,
    answers: { 200: json(eventWebhookAnswer) },
    refusals: [...invalid, 404],
  },

  'POST /customers': {
    summary: 'Registers a customer; 200: the same one again',
    access: 'key',
    headers: idempotencyHeader,
    answers: { 200: json(customerAnswer), 201: json(customerAnswer) },
    refusals: [...invalid, 409],
  },
  'GET /customers': { summary: 'Customers by creation', access: 'key', answers: { 200: json(pageOf(customerAnswer)) }, refusals: [400] },
  'GET /customers/{customer_id}': { summary: 'A customer', access: 'key', answers: { 200: json(customerAnswer) }, refusals: [404] },
  'PATCH /customers/{customer_id}': {
    summary: 'Changes a customer',
    access: 'key',
    headers: idempotencyHeader,
    answers: { 200: json(customerAnswer) },
    refusals: [...invalid, 404],
  },
  'DELETE /customers/{customer_id}': {
    summary: 'Deletes a customer; with cascade=true its sessions, too',
    access: 'key',
    headers: idempotencyHeader,
    answers: { 204: null },
    refusals: [400, 404, 409],
  },

  'GET /customers/{customer_id}/variables': {
    summary: 'The values that are set for a customer',
    access: 'key',
    answers: { 200: json(z.object({ items: z.array(variableValueAnswer) })) },
    refusals: [404],
  },
  'GET /customers/{customer_id}/variables/{variable_name}': {
    summary: 'A value of a customer',
    access: 'key',
    answers: { 200: json(variableValueAnswer) },
    refusals: [400, 404],
  },
  'PUT /customers/{customer_id}/variables/{variable_name}': {
    summary: 'Sets a value of a customer',
    access: 'key',
    headers: idempotencyHeader,
    answers: { 200: json(variableValueAnswer) },
    refusals: [...invalid, 404],
  },
  'DELETE /customers/{customer_id}/variables/{variable_name}': {
    summary: 'Deletes a value of a customer',
    access: 'key',
    headers: idempotencyHeader,
    answers: { 204: null },
    refusals: [400, 404],
  },
  'GET /variables/{variable_name}/values/{key}': {
    summary: 'A value by a key: the id of a customer, tag:<tag> or DEFAULT',
    access: 'key',
    answers: { 200: json(variableValueAnswer) },
    refusals: [400, 404],
  },
  'PUT /variables/{variable_name}/values/{key}': {
    summary: 'Sets a value by a key: the id of a customer, tag:<tag> or DEFAULT',
    access: 'key',
    headers: idempotencyHeader,
    answers: { 200: json(variableValueAnswer) },
    refusals: [...invalid, 404],
  },
  'DELETE /variables/{variable_name}/values/{key}': {
    summary: 'Deletes a value by a key: the id of a customer, tag:<tag> or DEFAULT',
    access: 'key',
    headers: idempotencyHeader,
    answers: { 204: null },
    refusals: [400, 404],
  },

  'POST /routines/{routine_id}/trigger': {
    summary: 'Starts a run of an autonomous routine; its result is posted to callback_url',
    access: 'key',
    headers: idempotencyHeader,
    answers: { 202: json(runEnvelopeAnswer), 409: json(triggerConflict) },
    refusals: [...invalid, 404, 500],
  },
  'GET /runs/{run_id}': { summary: 'A run', access: 'key', answers: { 200: json(runAnswer) }, refusals: [404] },
  'POST /runs/{run_id}/cancel': {
    summary: 'Fails a run that has not settled; 202 again when repeated',
    access: 'key',
    answers: { 202: json(runAnswer) },
    refusals: [...invalid, 404, 409],
  },
  'GET /runs/{run_id}/steps': {
    summary: 'The calls of a run, oldest first',
    access: 'key',
    answers: { 200: json(pageOf(runStepAnswer)) },
    refusals: [400, 404],
  },
  'GET /runs': { summary: 'Runs, newest first', access: 'key', answers: { 200: json(pageOf(runAnswer)) }, refusals: [400] },
  'GET /runs/{run_id}/deliveries': {
    summary: 'The callback of a run, once it has settled',
    access: 'key',
    answers: { 200: json(pageOf(deliveryAnswer)) },
    refusals: [400, 404],
  },
  'GET /deliveries': { summary: 'Callbacks, those of the newest runs first', access: 'key', answers: { 200: json(pageOf(deliveryAnswer)) }, refusals: [400] },
  'GET /webhook_deliveries': {
    summary: 'What webhooks of the manifest have taken, newest first',
    access: 'key',
    answers: { 200: json(pageOf(webhookDeliveryAnswer)) },
    refusals: [400],
  },
  'GET /dead_letters': {
    summary: 'What was given up, newest first, without its content',
    access: 'key',
    answers: { 200: json(pageOf(deadLetterAnswer)) },
    refusals: [400],
  },
  'POST /dead_letters/{dead_letter_id}/replay': {
    summary: 'Replays a callback, an event or a command by its owner; 409: it can not be replayed',
    access: 'key',
    answers: { 202: json(replayAnswer) },
    refusals: [...invalid, 404, 409],
  },
  'GET /journeys': {
    summary: "The agent's routines; format=mermaid: a drawing of all",
    access: 'key',
    answers: { 200: { json: z.object({ items: z.array(journeyAnswer) }), or: 'text/vnd.mermaid' } },
    refusals: [400],
  },
  'GET /journeys/{journey_id}/graph': {
    summary: 'The graph of a routine, by its journey id or its routine id; format=mermaid: a drawing',
    access: 'key',
    answers: { 200: { json: journeyGraphAnswer, or: 'text/vnd.mermaid' } },
    refusals: [400, 404],
  },
  'POST /webhooks/{name}': {
    summary: 'Takes a signed delivery: starts the run of a routine, or the runs of all routines that it is for',
    access: 'signature',
    answers: { 200: json(z.union([runEnvelopeAnswer, fanOutAnswer])), 202: json(runEnvelopeAnswer) },
    refusals: [...invalid, 401, 404, 502, 503],
  },
};

/** What is behind the key also refuses without it, while it is not ready, a malformed idempotency key, and what a page of another origin changes with the cookie. */
export function refusalsOf(method: string, { access, refusals }: Operation): readonly number[] {
  if (access !== 'key') return refusals;
  return [...new Set([...refusals, ...(method === 'GET' ? [] : [400, 403]), 401, 503])];
}
