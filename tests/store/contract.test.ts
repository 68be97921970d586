// The stores in folders, held to the contract.

import { describe, it } from "node:test";
import { conversationContract } from "../contract/conversations.ts";
import { folderPlace } from "../contract/places.ts";

describe("contract: log", () => conversationContract(it, () => folderPlace("log")));
