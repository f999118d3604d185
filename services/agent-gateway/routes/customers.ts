import { isDeepStrictEqual } from 'node:util';
import type { FastifyReply } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { type CustomerRecord, createCustomerRequest, listCustomersQuery, patchCustomerRequest } from '#shared/contracts/agent/customer.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { ulid } from '#shared/ids.ts';
import type { Queryable } from '#shared/storage/database.ts';
import { contextOfRequest } from '#shared/telemetry/http-server-spans.ts';
import { traceContextOf } from '#shared/telemetry/trace-context.ts';
import { changedCustomer } from '../customers/change-customer.ts';
import { CustomerRows, type NewCustomer } from '../customers/customer-rows.ts';
import { type DeleteSessionsDeps, deleteSessionsOf } from '../customers/delete-sessions.ts';
import type { FirstReplies, WriteReply } from '../first-replies.ts';
import { cursorOf, pageOf, positionOf } from '../page-cursor.ts';
import { checkedCustomerId, noSuchCustomer } from './customer-id.ts';
import { idempotencyKeyOf } from './idempotency-key.ts';

export interface CustomersDeps extends DeleteSessionsDeps {
  customerRows: CustomerRows;
  firstReplies: FirstReplies;
}

/**
 * POST /customers: 201 with the record; 200 with it when the same request is sent again under the same id, 409 when another is. GET, PATCH
 * /customers/:customer_id: 200 with the record. DELETE /customers/:customer_id: 204; 409 while it has sessions, unless `cascade=true`, which deletes them. GET
 * /customers: 200 with `{items, has_more, next_cursor}`. A write whose `Idempotency-Key` repeats gets the first reply.
 */
export function customers(deps: CustomersDeps): FastifyPluginAsyncZod {
  const { customerRows, firstReplies } = deps;
  const params = z.object({ customer_id: z.string() });
  const deletion = z.object({
    /** Whether the customer’s sessions are deleted, too. Without it a customer that has sessions is refused with 409. */
    cascade: z.stringbool().default(false),
  });

  return async (app) => {
    app.post('/customers', { schema: { body: createCustomerRequest } }, async (request, reply) => {
      const { id = `cus_${ulid()}`, ...given } = request.body;
      const key = idempotencyKeyOf(request.headers);
      return send(reply, await firstReplies.once({ operation: 'POST /customers', key }, (handle) => create(handle, { id, ...given })));
    });

    app.get('/customers', { schema: { querystring: listCustomersQuery } }, async (request) => {
      const { external_id: externalId = null, sort, limit, cursor } = request.query;
      const after = cursor === undefined ? null : positionOf('customers', cursor);
      const { items, next } = pageOf(await customerRows.list({ externalId, sort, after, limit }), limit);
      return { items, has_more: next !== null, next_cursor: next === null ? null : cursorOf('customers', next) };
    });

    app.get('/customers/:customer_id', { schema: { params } }, async (request) => {
      const customer = await customerRows.byId(checkedCustomerId(request.params.customer_id));
      if (customer === null) throw noSuchCustomer();
      return customer;
    });

    app.patch('/customers/:customer_id', { schema: { params, body: patchCustomerRequest } }, async (request, reply) => {
      const id = checkedCustomerId(request.params.customer_id);
      const key = idempotencyKeyOf(request.headers);
      const changed = await firstReplies.once({ operation: `PATCH /customers/${id}`, key }, async (handle) => {
        const rows = new CustomerRows(handle);
        const record = await rows.locked(id);
        if (record === null) throw noSuchCustomer();
        return { status: 200, body: await rows.change(changedCustomer(record, request.body)) };
      });
      return send(reply, changed);
    });

    const options = { schema: { params, querystring: deletion }, config: { appendsCommand: true, startsNoCall: true } };
    app.delete('/customers/:customer_id', options, async (request, reply) => {
      const id = checkedCustomerId(request.params.customer_id);
      const key = idempotencyKeyOf(request.headers);
      // Unknown customers keep their sessions: those of a release without customers have none.
      if (request.query.cascade && (await customerRows.byId(id)) !== null)
        await deleteSessionsOf(deps, id, traceContextOf(contextOfRequest(request)).traceparent);
      return send(reply, await firstReplies.once({ operation: `DELETE /customers/${id}`, key }, (handle) => remove(handle, id)));
    });
  };
}

function send(reply: FastifyReply, { status, body }: WriteReply): FastifyReply {
  return reply.code(status).send(body ?? undefined);
}

async function create(handle: Queryable, customer: NewCustomer): Promise<WriteReply> {
  const rows = new CustomerRows(handle);
  const created = await rows.insert(customer);
  if (created !== null) return { status: 201, body: created };
  const existing = await rows.byId(customer.id);
  // Deleted since the insert.
  if (existing === null) throw new SwitchyardError('service.no_answer', 'the customer with this id has just been deleted; send the request again');
  if (!isSame(existing, customer)) throw new SwitchyardError('customer.exists', 'there is another customer with this id');
  return { status: 200, body: existing };
}

function isSame(existing: CustomerRecord, { name, external_id, tags, metadata }: NewCustomer): boolean {
  const stored = [existing.name, existing.external_id, existing.tags, existing.metadata];
  // As it would be stored: JSON has no -0, for example.
  return isDeepStrictEqual(stored, JSON.parse(JSON.stringify([name, external_id, tags, metadata])));
}

async function remove(handle: Queryable, id: string): Promise<WriteReply> {
  const rows = new CustomerRows(handle);
  if (await rows.remove(id)) return { status: 204, body: null };
  if ((await rows.byId(id)) === null) throw noSuchCustomer();
  throw new SwitchyardError('customer.has_sessions', 'the customer has sessions: delete them first, or with it by cascade=true');
}
