import type { FastifyReply } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { isSharedKey, putValueRequest, type VariableValue } from '#shared/contracts/agent/variable.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { CustomerRows } from '../customers/customer-rows.ts';
import { checkType, type DeclaredVariables, noSuchVariable } from '../customers/declared-variables.ts';
import { VariableRows } from '../customers/variable-rows.ts';
import type { FirstReplies, WriteReply } from '../first-replies.ts';
import { invalidField } from '../plugins/error-reply.ts';
import { checkedCustomerId, isCustomerId, noSuchCustomer } from './customer-id.ts';
import { idempotencyKeyOf } from './idempotency-key.ts';

export interface VariablesDeps {
  variables: DeclaredVariables;
  variableRows: VariableRows;
  customerRows: Pick<CustomerRows, 'byId'>;
  firstReplies: FirstReplies;
}

interface Addressed {
  name: string;
  /** A customer's id, `tag:<tag>` or `DEFAULT`. */
  key: string;
}

/**
 * Values of the variables that the agent's variable sets declare. GET /customers/:customer_id/variables: 200 with `{items}`, those set for the customer. GET,
 * PUT, DELETE /customers/:customer_id/variables/:variable_name and /variables/:variable_name/values/:key, with a customer's id, `tag:<tag>` or `DEFAULT`: 200
 * with `{name, data, last_modified}`, 204. A write whose `Idempotency-Key` repeats gets the first reply.
 */
export function variables({ variables: declared, variableRows, customerRows, firstReplies }: VariablesDeps): FastifyPluginAsyncZod {
  const ofCustomer = z.object({ customer_id: z.string() });
  const ofCustomerByName = ofCustomer.extend({ variable_name: z.string() });
  const ofKey = z.object({ variable_name: z.string(), key: z.string() });

  const read = async ({ key, name }: Addressed): Promise<VariableValue> => {
    if (!declared.has(name)) throw noSuchVariable();
    if (!isSharedKey(key) && (await customerRows.byId(checkedCustomerId(key))) === null) throw noSuchCustomer();
    const value = await variableRows.read(key, name);
    if (value === null) throw noValue();
    return value;
  };
  const write = ({ key, name }: Addressed, idempotencyKey: string | null, data: unknown): Promise<WriteReply> => {
    const variable = declared.get(name);
    if (variable === undefined) throw noSuchVariable();
    if (!isSharedKey(key)) checkedCustomerId(key);
    return firstReplies.once({ operation: `PUT ${name} ${key}`, key: idempotencyKey }, async (handle) => {
      // Its row is locked: a value is not stored behind the customer's deletion.
      const customer = isSharedKey(key) ? undefined : await new CustomerRows(handle).shared(key);
      if (customer === null) throw noSuchCustomer();
      if (customer?.ephemeral === true) throw invalidField('/key', 'must not be the customer of a run');
      checkType(variable, data);
      return { status: 200, body: await new VariableRows(handle).store(key, name, data) };
    });
  };
  const remove = ({ key, name }: Addressed, idempotencyKey: string | null): Promise<WriteReply> => {
    if (!declared.has(name)) throw noSuchVariable();
    if (!isSharedKey(key) && !isCustomerId(key)) throw noSuchCustomer();
    return firstReplies.once({ operation: `DELETE ${name} ${key}`, key: idempotencyKey }, async (handle) => {
      if (!(await new VariableRows(handle).remove(key, name))) throw noValue();
      return { status: 204, body: null };
    });
  };
  const send = (reply: FastifyReply, { status, body }: WriteReply) => reply.code(status).send(body ?? undefined);
  const addressOf = (params: z.infer<typeof ofCustomerByName>): Addressed => ({ name: params.variable_name, key: params.customer_id });

  return async (app) => {
    app.get('/customers/:customer_id/variables', { schema: { params: ofCustomer } }, async ({ params }) => {
      const id = checkedCustomerId(params.customer_id);
      if ((await customerRows.byId(id)) === null) throw noSuchCustomer();
      return { items: await variableRows.readAll(id, [...declared.keys()]) };
    });

    const byCustomer = '/customers/:customer_id/variables/:variable_name';
    // An id like `DEFAULT` is no customer's.
    const customerIn = (params: z.infer<typeof ofCustomerByName>) => ({ ...addressOf(params), key: checkedCustomerId(params.customer_id) });
    app.get(byCustomer, { schema: { params: ofCustomerByName } }, ({ params }) => read(customerIn(params)));
    app.put(byCustomer, { schema: { params: ofCustomerByName, body: putValueRequest } }, async (request, reply) =>
      send(reply, await write(customerIn(request.params), idempotencyKeyOf(request.headers), request.body.data)),
    );
    app.delete(byCustomer, { schema: { params: ofCustomerByName } }, async (request, reply) =>
      send(reply, await remove(customerIn(request.params), idempotencyKeyOf(request.headers))),
    );

    const byKey = '/variables/:variable_name/values/:key';
    const keyIn = (params: z.infer<typeof ofKey>) => ({ name: params.variable_name, key: params.key });
    app.get(byKey, { schema: { params: ofKey } }, ({ params }) => read(keyIn(params)));
    app.put(byKey, { schema: { params: ofKey, body: putValueRequest } }, async (request, reply) =>
      send(reply, await write(keyIn(request.params), idempotencyKeyOf(request.headers), request.body.data)),
    );
    app.delete(byKey, { schema: { params: ofKey } }, async (request, reply) =>
      send(reply, await remove(keyIn(request.params), idempotencyKeyOf(request.headers))),
    );
  };
}

function noValue(): SwitchyardError {
  return new SwitchyardError('variable.not_found', 'the variable has no value for this key');
}
