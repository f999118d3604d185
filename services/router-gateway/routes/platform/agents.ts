import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { AgentRows, RegisteredAgent } from '#shared/config/agent-rows.ts';
import { agentId } from '#shared/contracts/manifest/agent-id.ts';
import { httpUrl } from '#shared/contracts/manifest/hosts.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { validation } from '../../plugins/validation.ts';
import { type PlatformLimits, platformLimits } from './limits.ts';

export interface AgentsDeps {
  agentRows: AgentRows;
  limits: PlatformLimits;
}

const id = agentId.max(platformLimits.idCharacters);
/** PostgreSQL stores no NUL. */
const label = z
  .string()
  .min(1)
  .max(platformLimits.nameCharacters)
  .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'must hold no control characters');
const ofAgent = z.object({ id: z.string() });
const registration = z.object({ id, name: label, version: label, url: httpUrl.max(platformLimits.urlCharacters) });
const listQuery = z.object({
  limit: z.coerce.number().int().min(1).max(platformLimits.pageDocuments).default(platformLimits.defaultPage),
  cursor: id.optional(),
});

/** PUT, GET /platform/agents/{id} and GET /platform/agents: where agents with an endpoint are reached. A registration lasts while it is renewed. */
export function agents({ agentRows, limits }: AgentsDeps): FastifyPluginAsyncZod {
  return async (app) => {
    app.setValidatorCompiler(validation.compiler);

    app.put('/platform/agents/:id', { schema: { params: ofAgent, body: registration } }, async ({ params, body }, reply) => {
      if (body.id !== params.id) throw new SwitchyardError('request.invalid', 'id must be the id of the address', { details: { param: 'id' } });
      const registered = await agentRows.register(body, limits.agents);
      if (registered === null) throw new SwitchyardError('request.conflict', `There are ${limits.agents} agents already: one has to expire first`);
      const isNew = registered.registeredAt.getTime() === registered.renewedAt.getTime();
      return reply.code(isNew ? 201 : 200).send(publicOf(registered));
    });

    app.get('/platform/agents/:id', { schema: { params: ofAgent } }, async ({ params }) => {
      const registered = id.safeParse(params.id).success ? await agentRows.read(params.id) : null;
      if (registered === null) throw new SwitchyardError('request.not_found', 'There is no agent of this id');
      return publicOf(registered);
    });

    app.get('/platform/agents', { schema: { querystring: listQuery } }, async ({ query }) => {
      const found = await agentRows.list({ after: query.cursor ?? '', limit: query.limit + 1 });
      const items = found.slice(0, query.limit);
      const hasMore = found.length > query.limit;
      return { items: items.map(publicOf), has_more: hasMore, next_cursor: hasMore ? (items.at(-1)?.id ?? null) : null };
    });
  };
}

function publicOf({ id: agent, name, version, url, registeredAt, renewedAt, isLive }: RegisteredAgent) {
  return { id: agent, name, version, url, is_live: isLive, registered_at: registeredAt.toISOString(), renewed_at: renewedAt.toISOString() };
}
