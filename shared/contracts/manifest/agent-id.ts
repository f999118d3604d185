import { z } from 'zod';

/** The `id` of a manifest: of an agent. */
export const agentId = z.string().regex(/^[A-Za-z0-9_-]+$/, 'must be letters, digits, hyphens or underscores');
