import type { FastifyPluginAsync } from 'fastify';
import type { Living } from '#shared/config/living.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { ModelLists } from '../model-lists.ts';

/** Ids may contain slashes. */
const ENDPOINTS = /^(.+)\/endpoints$/;

/** GET /models, /models/count, /models/<id> and /models/<id>/endpoints: the configured models; /embeddings/models: those of vectors. Aliases are not listed. */
export function listModels(setup: Living<{ modelLists: ModelLists }>): FastifyPluginAsync {
  const lists = () => setup.current().modelLists;
  return async (app) => {
    app.get('/models', async () => lists().all);
    app.get('/embeddings/models', async () => lists().ofVectors);
    app.get('/models/count', async () => ({ data: { count: lists().all.total_count } }));
    app.get<{ Params: { '*': string } }>('/models/*', async ({ params }) => {
      const path = params['*'];
      const { answerOf, endpointsOf } = lists();
      // The whole path first: an id may end in `/endpoints`.
      const answer = answerOf.get(path) ?? endpointsOf.get(ENDPOINTS.exec(path)?.[1] ?? '');
      if (answer === undefined) throw new SwitchyardError('request.not_found', 'There is no model of this id');
      return answer;
    });
  };
}
