from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('audit', '0002_observed_and_search'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='auditline',
            index=models.Index(condition=models.Q(('source', 'cluster')), fields=['-number'], name='audit_seen'),
        ),
    ]
