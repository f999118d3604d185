import { z } from 'zod';
import { providerIdentity } from '#shared/config/router-config.ts';

export const scriptedConfig = z.strictObject({ ...providerIdentity, kind: z.literal('scripted') });
