import { createHash } from 'node:crypto';
import type { FastifyPluginAsync, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { contextOfRequest } from '#shared/telemetry/http-server-spans.ts';
import { traceContextOf } from '#shared/telemetry/trace-context.ts';
import type { RunAcceptance } from '../accept-runs.ts';
import { noSuchWebhook } from '../plugins/error-reply.ts';
import { acceptRawBodies } from '../plugins/raw-bodies.ts';
import type { RunRows } from '../run-rows.ts';
import type { FanOut } from '../webhooks/fan-out.ts';
import type { InboundWebhook } from '../webhooks/inbound-webhooks.ts';
import { objectReader } from '../webhooks/read-object.ts';
import { hasSignature, isSigned } from '../webhooks/signature.ts';

export interface WebhookDeps {
  webhooks: ReadonlyMap<string, InboundWebhook>;
  /** The value of a `${VAR_NAME}` as it is at this moment; null: it is not set. */
  secretNow(reference: string): string | null | Promise<string | null>;
  runRows: RunRows;
  acceptance: RunAcceptance;
  fanOut: FanOut;
}

/**
 * POST /webhooks/:name, signed instead of under the agent's key. The body becomes the input of runs without a callback. Of a routine's own webhook: 202 with
 * the run, and 200 with it when the same body comes again. Of one of the manifest: 200 with the routines that the body is for and their runs. Order of refusals:
 * unknown name (404), no signature (401), size and encoding (413, 415), wrong signature (401), no JSON object (400), no verdict on a routine's conditions (502).
 */
export function webhook({ webhooks, secretNow, runRows, acceptance, fanOut }: WebhookDeps): FastifyPluginAsync {
  const params = z.object({ name: z.string() });
  const webhookOf = (request: FastifyRequest): InboundWebhook => {
    const found = webhooks.get(params.parse(request.params).name);
    if (found === undefined) throw noSuchWebhook();
    return found;
  };

  return async (app) => {
    const objectIn = objectReader(app);
    acceptRawBodies(app);
    const options = {
      config: { isSigned: true, appendsCommand: true },
      // Before the body is read: an unknown name takes precedence.
      onRequest: async (request: FastifyRequest) => {
        const { signature } = webhookOf(request);
        if (!hasSignature(request.raw.rawHeaders, signature)) throw unsigned();
      },
    };
    app.post('/webhooks/:name', options, async (request, reply) => {
      const { name, secretRef, signature, target } = webhookOf(request);
      const body = bytesOf(request);
      if (!isSigned(body, request.raw.rawHeaders, signature, await secretNow(secretRef))) throw unsigned();
      const input = await objectIn(request, body);
      const { traceparent: parent } = traceContextOf(contextOfRequest(request));
      const idempotencyKey = `wh:${name}:${createHash('sha256').update(body).digest('hex')}`;
      if (target.kind === 'fan-out') return fanOut.dispatch({ webhook: name, candidates: target.candidates, key: idempotencyKey, body: input, parent });
      const { routine } = target;
      const prior = await runRows.byKey(routine.id, idempotencyKey);
      if (prior !== null) return reply.code(200).send(prior);
      const run = await acceptance.accept({ routine, input, metadata: { webhook: name }, callbackUrl: null, idempotencyKey, session: null, parent });
      return run === null ? reply.code(200).send(await runRows.winnerOf(routine.id, idempotencyKey)) : reply.code(202).send(run);
    });
  };
}

function unsigned(): SwitchyardError {
  return new SwitchyardError('webhook.unsigned', 'unauthorized');
}

const NO_BYTES = Buffer.alloc(0);

function bytesOf({ body }: FastifyRequest): Buffer {
  return Buffer.isBuffer(body) ? body : NO_BYTES;
}
