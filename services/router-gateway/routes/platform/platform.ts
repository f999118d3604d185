import type { FastifyPluginAsync } from 'fastify';
import { AgentRows } from '#shared/config/agent-rows.ts';
import { DocumentRows } from '#shared/config/document-rows.ts';
import { parseJsonBodies } from '#shared/http-server/json-bodies.ts';
import type { Queryable } from '#shared/storage/database.ts';
import { type Admission, admitRequests, countedByAdmission } from '../../admission.ts';
import { neededDatabase } from '../../needed-database.ts';
import { boundsOf } from '../../request-bounds.ts';
import { agents } from './agents.ts';
import { documents } from './documents.ts';
import { platformLimits } from './limits.ts';

export interface PlatformDeps {
  /** Null: none is configured, and the routes answer 503. */
  database: Queryable | null;
  admission: Admission;
}

/** What this deployment is as the platform of agents, its own and others' (ADR 76). */
export function platform({ database, admission }: PlatformDeps): FastifyPluginAsync {
  const { bodyBytes, retryAfterMs } = platformLimits;
  const documentRows = new DocumentRows(neededDatabase(database, 'Documents', retryAfterMs));
  const agentRows = new AgentRows(neededDatabase(database, 'Agents', retryAfterMs));
  return async (app) => {
    admitRequests(app, admission, bodyBytes);
    parseJsonBodies(app, { limitBytes: bodyBytes, ...countedByAdmission, mayBeEmpty: false, bounded: boundsOf(platformLimits) });
    await app.register(agents({ agentRows, limits: platformLimits }));
    await app.register(documents({ documentRows, limits: platformLimits }));
  };
}
