import { z } from 'zod';
import { providerIdentity } from '#shared/config/router-config.ts';

export const sentenceEncoderConfig = z.strictObject({ ...providerIdentity, kind: z.literal('sentence-encoder') });
