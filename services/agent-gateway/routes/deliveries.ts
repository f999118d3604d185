import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { listDeliveriesQuery, listWebhookDeliveriesQuery } from '#shared/contracts/agent/deliveries.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { type DeliveryList, deliveryOf, webhookDeliveryOf } from '../deliveries/delivery-list.ts';
import { timePage, timePositionOf } from '../deliveries/time-cursor.ts';
import { noSuchSession } from '../plugins/error-reply.ts';
import type { RunRows } from '../run-rows.ts';
import { isRunId, noSuchRun } from './run-id.ts';
import { checkedSessionId } from './session-id.ts';

interface DeliveriesDeps {
  deliveryList: DeliveryList;
  runRows: RunRows;
  /** Null: unknown right now. */
  isKnownSession(sessionId: string): Promise<boolean | null>;
}

/**
 * GET /deliveries: callbacks, those of the newest runs first; GET /runs/:run_id/deliveries: one run's. GET /webhook_deliveries: what webhooks of the manifest
 * have taken. All `{items, has_more, next_cursor}`. GET /sessions/:session_id/event_webhook: how far the session's events are posted.
 */
export function deliveries({ deliveryList, runRows, isKnownSession }: DeliveriesDeps): FastifyPluginAsyncZod {
  const ofRun = z.object({ run_id: z.string() });
  const ofSession = z.object({ session_id: z.string() });
  return async (app) => {
    app.get('/deliveries', { schema: { querystring: listDeliveriesQuery } }, async ({ query: { state, limit, cursor } }) => {
      const rows = await deliveryList.callbacks(state ?? null, timePositionOf('deliveries', cursor), limit);
      return timePage('deliveries', rows, limit, deliveryOf);
    });

    app.get('/runs/:run_id/deliveries', { schema: { params: ofRun } }, async ({ params: { run_id: runId } }) => {
      if (!isRunId(runId) || (await runRows.byId(runId)) === null) throw noSuchRun();
      return { items: (await deliveryList.ofRun(runId)).map(deliveryOf), has_more: false, next_cursor: null };
    });

    app.get('/webhook_deliveries', { schema: { querystring: listWebhookDeliveriesQuery } }, async ({ query: { limit, cursor } }) => {
      const rows = await deliveryList.ofWebhooks(timePositionOf('webhook-deliveries', cursor), limit);
      return timePage('webhook-deliveries', rows, limit, webhookDeliveryOf);
    });

    app.get('/sessions/:session_id/event_webhook', { schema: { params: ofSession } }, async ({ params }) => {
      const sessionId = checkedSessionId(params.session_id);
      const state = await deliveryList.eventWebhook(sessionId);
      if (state !== null) return state;
      if ((await isKnownSession(sessionId)) === false) throw noSuchSession();
      throw new SwitchyardError('request.not_found', 'the session has no event webhook');
    });
  };
}
