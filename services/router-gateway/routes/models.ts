import type { FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Living } from '#shared/config/living.ts';
import { listQuery, modelQuery } from '#shared/contracts/router/model-query.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { MeasuredEndpoints } from '../models/measured.ts';
import type { ListedModel, ModelLists } from '../models/model-lists.ts';
import { selectModels } from '../models/select-models.ts';
import { validation } from '../plugins/validation.ts';

/** Ids may contain slashes. */
const ENDPOINTS = /^(.+)\/endpoints$/;
const params = z.object({ '*': z.string() });

/** What of the configuration clients may read: models with their endpoints, and providers. Aliases are not listed. */
export function listModels(setup: Living<{ modelLists: ModelLists }>, measured: MeasuredEndpoints): FastifyPluginAsyncZod {
  const lists = () => setup.current().modelLists;
  return async (app) => {
    app.setValidatorCompiler(validation.compiler);
    app.get('/models', { schema: { querystring: modelQuery } }, async (request) => {
      if (request.query.sort !== undefined) await measured.refresh();
      return selectModels(lists().all, request.query, pathOf(request), measured);
    });
    const listed = (url: string, of: (request: FastifyRequest) => readonly ListedModel[]) =>
      app.get(url, { schema: { querystring: listQuery } }, async (request) => {
        return selectModels(of(request), request.query, pathOf(request), measured);
      });
    listed('/models/user', ({ keyId }) => lists().ofKey(keyId));
    listed('/embeddings/models', () => lists().ofVectors);
    app.get('/models/count', { schema: { querystring: listQuery } }, async ({ query: { output_modalities: outputs } }) => {
      const { total_count: count } = selectModels(lists().all, { output_modalities: outputs }, '', measured);
      return { data: { count } };
    });
    app.get('/endpoints/zdr', async () => {
      await measured.refresh();
      return lists().zeroRetention(measured);
    });
    app.get('/providers', async () => lists().providers);
    app.get('/models/*', { schema: { params } }, async (request) => {
      const path = request.params['*'];
      // The whole path first: an id may end in `/endpoints`.
      const one = lists().one(path);
      if (one !== null) return one;
      await measured.refresh();
      return lists().endpoints(ENDPOINTS.exec(path)?.[1] ?? '', measured) ?? unknown();
    });
    app.get('/model/*', { schema: { params } }, async (request) => lists().one(request.params['*']) ?? unknown());
  };
}

function pathOf({ url }: FastifyRequest): string {
  return url.split('?', 1)[0] ?? url;
}

function unknown(): never {
  throw new SwitchyardError('request.not_found', 'There is no model of this id');
}
