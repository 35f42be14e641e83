"""Accounts, users, and the associations between them (sacctmgr(1))."""

from collections.abc import Iterable

from slurmclient.accounting.records import Records
from slurmclient.api.operation import Value
from slurmclient.calls.speaker import Outcome
from slurmclient.models import Account, Association, User


class Accounts(Records[Account]):
    """The accounts."""

    async def add(
        self,
        *names: str,
        description: str = "",
        organization: str = "",
        clusters: Iterable[str] = (),
        **association: object,
    ) -> Outcome:
        """Create accounts with their associations.

        Args:
            description: The description of each; "" for its name.
            organization: The organization of each; "" for its parent's.
            clusters: The clusters to add them to; by default all.
            association: Slurm's fields (OpenAPI: `assoc_rec_set`), such as `fairshare`, `maxjobs`,
                `parent`.
        """
        condition = {
            "accounts": list(names),
            "clusters": list(clusters) or None,
            "association": association or None,
        }
        account = {"description": description or None, "organization": organization or None}
        body = {"association_condition": condition, "account": account}
        _, outcome = await self._speaker.write("slurmdb_post_accounts_association", body=body)
        return outcome


class Users(Records[User]):
    """The users."""

    async def add(
        self,
        *names: str,
        accounts: Iterable[str],
        default_account: str = "",
        clusters: Iterable[str] = (),
        **association: object,
    ) -> Outcome:
        """Create users with their associations, or add associations to existing users.

        Args:
            default_account: One of these; "" for a new user's first.
            clusters: The clusters to add them on; by default all.
            association: Slurm's fields (OpenAPI: `assoc_rec_set`), such as `fairshare`, `maxjobs`.
        """
        body = {
            "association_condition": {
                "accounts": list(accounts),
                "users": list(names),
                "clusters": list(clusters) or None,
                "association": association or None,
            },
            "user": {"defaultaccount": default_account or None},
        }
        _, outcome = await self._speaker.write("slurmdb_post_users_association", body=body)
        return outcome


class Associations(Records[Association]):
    """The associations: a user in an account on a cluster, in one partition or in all."""

    async def delete_where(self, **query: Value) -> Outcome:
        """Delete all associations that match.

        Args:
            query: Slurm's query parameters, such as `user`, `account`, `cluster`, `partition`.

        Raises:
            ValueError: If there is no filter, which would mean every association.
        """
        if not any(query.values()):
            raise ValueError("expected a filter such as user=…, account=… or cluster=…, got none")
        _, outcome = await self._speaker.write("slurmdb_delete_associations", query=query)
        return outcome
