import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { traceQuery } from '../contracts/local-trace.ts';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import type { Tracing } from '../telemetry/tracing.ts';

/**
 * GET /traces: the last traces of this process, newest first, as `{traces}`. GET /traces/:trace_id: one of them with its spans. 404 where the process keeps
 * none, and for a trace that it does not keep, or no longer.
 */
export function localTraces({ local = null }: Pick<Tracing, 'local'>): FastifyPluginAsyncZod {
  const kept = () => {
    if (local === null) throw new SwitchyardError('request.not_found', 'this process keeps no traces: set TRACES_LOCAL=true');
    return local;
  };
  return async (app) => {
    app.get('/traces', { schema: { querystring: traceQuery } }, async (request, reply) => {
      reply.header('cache-control', 'no-store');
      return { traces: kept().list(request.query.limit) };
    });

    app.get('/traces/:trace_id', { schema: { params: z.object({ trace_id: z.string() }) } }, async (request, reply) => {
      const trace = kept().one(request.params.trace_id);
      if (trace === null) throw new SwitchyardError('request.not_found', 'there is no such trace in the memory of this process');
      reply.header('cache-control', 'no-store');
      return trace;
    });
  };
}
